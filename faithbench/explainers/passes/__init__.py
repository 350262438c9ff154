"""Forward, backward and relevance passes that explainers read.

`capture` records one plain pass, `blocks` the parts of each block, `gradient_paths` gradients at
many points. `lrp`, `attn_lrp` and `deep_lift` are backward passes by other rules: `rule_mode`
is their base, `lrp_rules` holds the autograd functions. `heads` reads statistics of attention
heads. All but `heads` load torch; this module loads nothing.
"""

__all__ = [
    "attn_lrp",
    "blocks",
    "capture",
    "deep_lift",
    "gradient_paths",
    "heads",
    "lrp",
    "lrp_rules",
    "rule_mode",
]
