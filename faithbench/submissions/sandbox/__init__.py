"""Run an untrusted explainer in a subprocess that is confined, timed, and asked for scores only.

`client.ask_explainer` starts `worker` through `process`, in `bubblewrap` where there is one,
and checks every line that comes back; `messages` are those lines. The worker confines itself by
`confine`, with `landlock` for files and `seccomp` for system calls, and tries each promise by
`trials`, before any untrusted code runs.
`process.enforced_here` tells which of these limits hold on this machine.

Nothing is imported here: see `worker` for why.
"""
