"""The contrast of text as a browser draws it, by the formula of WCAG 2."""

from __future__ import annotations

from typing import Any

# Colours are read back from a canvas: it understands whatever the style sheets say.
_SCRIPT = """
const canvas = document.createElement("canvas");
canvas.width = canvas.height = 1;
const brush = canvas.getContext("2d", { willReadFrequently: true });
const known = new Map();
const parse = (text) => {
  if (!known.has(text)) {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = text;
    brush.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
    known.set(text, [r, g, b, a / 255]);
  }
  return known.get(text);
};
const over = (top, under) => under.map((c, i) => top[3] * top[i] + (1 - top[3]) * c);
const behind = (element) => {
  const layers = [];
  for (let one = element; one; one = one.parentElement)
    layers.push(parse(getComputedStyle(one).backgroundColor));
  return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
};
const light = (colour) => {
  const [r, g, b] = colour.map((c) => {
    const share = c / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const weak = [];
let count = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode;
  const element = text.parentElement;
  if (!text.textContent.trim() || !element.checkVisibility({ checkOpacity: true })) continue;
  if (element.closest("svg, script, style, noscript, option, :disabled, .chip:has(:disabled)"))
    continue;
  const style = getComputedStyle(element);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const back = behind(element);
  const [one, two] = [light(over(parse(style.color), back)), light(back)].sort((a, b) => b - a);
  const ratio = (one + 0.05) / (two + 0.05);
  count += 1;
  if (ratio < (large ? 3 : 4.5))
    weak.push(`${ratio.toFixed(2)} ${element.className}: ${text.textContent.trim().slice(0, 30)}`);
}
return [count, [...new Set(weak)]];
"""


def weak_texts(driver: Any) -> tuple[int, list[str]]:
    """Return the number of visible texts, and those with less contrast than level AA asks for."""
    count, weak = driver.execute_script(_SCRIPT)
    return int(count), list(weak)


def prefer(driver: Any, scheme: str) -> None:
    """Make the open page say that its user prefers light or dark pages."""
    from selenium.webdriver.support.ui import WebDriverWait

    feature = {"name": "prefers-color-scheme", "value": scheme}
    asked = f"return matchMedia('(prefers-color-scheme: {scheme})').matches"

    def told(_: Any) -> bool:
        # Said again each time: a page that was just opened may change the process that draws it,
        # and the new one was not told.
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        return bool(driver.execute_script(asked))

    WebDriverWait(driver, 30).until(told)
