/** The style of the page. */
export const style = `
:root {
  --text: #1b1f24; --soft: #57606a; --ground: #ffffff; --card: #f4f6f8; --line: #d0d7de; --accent: #0b6e4f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e6edf3; --soft: #a9b4c0; --ground: #0d1117; --card: #161b22; --line: #30363d; --accent: #56d3a2;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 70rem; background: var(--ground); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere;
}
h1 { margin: 0; font-size: 1.75rem; }
h2 { margin: 2.5rem 0 0.75rem; font-size: 1.25rem; border-bottom: 1px solid var(--line); padding-bottom: 0.25rem; }
h3 { margin: 0 0 0.25rem; font-size: 1rem; }
p { margin: 0.25rem 0; }
header p, .caveats, dd { color: var(--soft); font-size: 0.875rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 0.75rem; margin: 0; }
.figures > div { background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.75rem 1rem; }
dt { font-size: 0.875rem; font-weight: 600; }
dd { margin: 0; }
dd.figure { color: var(--text); font-size: 1.375rem; font-weight: 600; line-height: 1.3; margin: 0.25rem 0; }
.bars { list-style: none; margin: 1.25rem 0; padding: 0; }
.bars li { display: grid; grid-template-columns: 7rem 1fr 10rem; gap: 0.75rem; align-items: center; margin: 0.375rem 0; }
.bar { background: var(--card); border: 1px solid var(--line); border-radius: 0.25rem; height: 1.25rem; }
.bar span { display: block; height: 100%; background: var(--accent); border-radius: 0.2rem; }
.amount, td { font-variant-numeric: tabular-nums; text-align: right; }
.caveats { padding-left: 1.25rem; }
.findings { padding-left: 1.25rem; margin: 0; }
.findings > li { margin: 0 0 1.25rem; padding-left: 0.25rem; }
.money strong { color: var(--accent); }
summary { cursor: pointer; color: var(--soft); font-size: 0.875rem; }
.table { overflow-x: auto; margin: 0.5rem 0 1.5rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; }
th, td { padding: 0.3rem 0.5rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { text-align: left; font-weight: 600; }
thead th:not(:first-child) { text-align: right; white-space: nowrap; }
tbody th { font-weight: 400; min-width: 8rem; }
pre, code { font: 0.8125rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.75rem 1rem; overflow-x: auto; margin: 0.5rem 0 1rem; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media (max-width: 40rem) {
  .bars li { grid-template-columns: 1fr auto; }
  .bars .bar { grid-column: 1 / -1; grid-row: 2; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  details::details-content { content-visibility: visible; block-size: auto; }
  summary { list-style: none; }
  pre { white-space: pre-wrap; }
  h2, h3 { break-after: avoid; }
  tr, .findings > li > p, .figures > div { break-inside: avoid; }
}
`
