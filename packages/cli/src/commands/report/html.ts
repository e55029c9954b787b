/** The report as one page: no script and no request, for light and dark, narrow and wide, screen and paper (adoption.md 1). */
import { reportedDimensions, type ReportedDimension } from '@tenon/ask/report'
import type { NextStep } from './next-steps.ts'
import type { PrintedObstacle, PrintedReport } from './printed.ts'
import { style } from './style.ts'
import {
  amountText,
  autoscalerText,
  caveats,
  countText,
  decimalText,
  few,
  headlines,
  obstacleCost,
  obstacleWords,
  riskWords,
  shortened,
  tableWords,
} from './words.ts'

/** Names and texts of the cluster are escaped: nothing of them is markup. */
export function htmlOf(report: PrintedReport): string {
  const about = [report.source, autoscalerText(report)]
  return page(
    { title: 'Cluster report', at: report.takenAt, about },
    `<section aria-labelledby="figures">
<h2 id="figures">In short</h2>
<dl class="figures">${headlines(report).map(headline).join('')}</dl>
${bars(report)}
${list(caveats(report), 'caveats')}
</section>
<section aria-labelledby="obstacles">
<h2 id="obstacles">What stands in the way</h2>
${obstacles(report)}
</section>
<section aria-labelledby="risks">
<h2 id="risks">Risks</h2>
${risks(report)}
</section>
<section aria-labelledby="next">
<h2 id="next">Next</h2>
${report.next.map(nextStep).join('\n')}
</section>
<section aria-labelledby="costs">
<h2 id="costs">What it costs now</h2>
${reportedDimensions.map((by) => costTable(report, by)).join('\n')}
</section>`,
  )
}

/** @param content markup of the sections. */
export function page(
  { title, at, about }: { readonly title: string; readonly at: string; readonly about: readonly string[] },
  content: string,
): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>${text(title)} of ${text(at)}</title>
<style>${style}</style>
</head>
<body>
<header>
<h1>${text(title)}</h1>
${about.map((each) => `<p>${text(each)}</p>`).join('\n')}
</header>
<main>
${content}
</main>
</body>
</html>
`
}

const entities: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
])

export function text(raw: string): string {
  return raw.replaceAll(/[&<>"']/g, (character) => entities.get(character) ?? '')
}

export function list(items: readonly string[], kind: string): string {
  return `<ul class="${kind}">${items.map((each) => `<li>${text(each)}</li>`).join('')}</ul>`
}

export function headline({ title, figure, about }: ReturnType<typeof headlines>[number]): string {
  return `<div><dt>${text(title)}</dt><dd class="figure">${text(figure)}</dd><dd>${text(about)}</dd></div>`
}

/** Three bars to compare at a glance; the figures stand beside them. */
function bars(report: PrintedReport): string {
  const { now, plans } = report
  if (plans === undefined || now.price === undefined || now.price.perMonth === 0) return ''
  const most = now.price.perMonth
  const rows = [
    ['Now', most],
    ['By moves', plans.byMoves.price.perMonth],
    ['From nothing', plans.fromNothing.price.perMonth],
  ] as const
  const bar = ([name, amount]: (typeof rows)[number]) =>
    `<li><span>${name}</span><span class="bar" aria-hidden="true"><span style="width:${((amount / most) * 100).toFixed(1)}%"></span></span><span class="amount">${text(amountText(amount, report))}</span></li>`
  return `<ul class="bars" aria-label="Cost a month">${rows.map(bar).join('')}</ul>`
}

function obstacles(report: PrintedReport): string {
  if (report.obstacles.length === 0) return '<p>Nothing that was looked for.</p>'
  return `<ol class="findings">${report.obstacles.map((each) => obstacle(each, report)).join('')}</ol>`
}

function obstacle(each: PrintedObstacle, report: PrintedReport): string {
  const { kind, nodes, pods, items, itemCount } = each
  const { title, fix } = obstacleWords[kind]
  const { figure, meaning } = obstacleCost(each, report)
  const where = `${countText(pods, 'pod')} on ${countText(nodes, 'node')}`
  const rows = items.map(({ name, nodes: on, pods: of }) => [name, String(on), String(of)])
  return `<li><h3>${text(title)}</h3>
<p class="money"><strong>${text(figure)}</strong>${text(meaning)}; ${text(where)}.</p>
<p>${text(fix)}</p>
${details(itemCount, rows, table(title, ['Name', 'Nodes', 'Pods'], rows))}</li>`
}

function risks({ risks: all }: PrintedReport): string {
  if (all.length === 0) return '<p>None that was looked for.</p>'
  const risk = ({ kind, items, itemCount }: PrintedReport['risks'][number]) => {
    const { title, fix } = riskWords[kind]
    const rows = items.map(({ name, detail = '' }) => [name, detail])
    const listed = details(itemCount, rows, table(title, ['Name', 'What was found'], rows))
    return `<li><h3>${text(title)}</h3><p>${text(fix)}</p>${listed}</li>`
  }
  return `<ul class="findings">${all.map(risk).join('')}</ul>`
}

const namesInSummary = 3

/** Closed, so that the page shows what matters first; on paper all are open. */
function details(count: number, rows: readonly (readonly string[])[], content: string): string {
  const names = few(
    rows.map(([name = '']) => name),
    count,
    namesInSummary,
  )
  const more = count > rows.length ? `<p>${rows.length} of ${count} are listed.</p>` : ''
  return `<details><summary>${text(names)}</summary>${content}${more}</details>`
}

function nextStep({ title, file, commands }: NextStep): string {
  const manifest =
    file === undefined
      ? ''
      : `<p>Write <code>${text(file.name)}</code>:</p><pre tabindex="0">${text(file.text.trimEnd())}</pre><p>Then:</p>`
  return `<h3>${text(title)}</h3>${manifest}<pre tabindex="0">${text(commands.join('\n'))}</pre>`
}

function costTable(report: PrintedReport, by: ReportedDimension): string {
  const { groups, idlePerMonth, more } = shortened(report.cost[by])
  const byPods = by === 'namespace' || by === 'owner'
  const unit = report.currency ?? 'Price'
  const hasUnknown = groups.some(({ unpriced }) => unpriced > 0)
  const columns = [
    tableWords[by],
    byPods ? 'Pods' : 'Nodes',
    `${unit} a month`,
    ...(byPods ? [] : ['Of it idle']),
    ...(hasUnknown ? ['Unpriced'] : []),
  ]
  const rows = groups.map(({ name = '(none)', instances, pods, perMonth, idlePerMonth: idle, unpriced }) => [
    name,
    String(instances ?? pods),
    money(perMonth),
    ...(byPods ? [] : [money(idle)]),
    ...(hasUnknown ? [String(unpriced)] : []),
  ])
  const idleRow = byPods ? [['(idle)', '', money(idlePerMonth), ...(hasUnknown ? [''] : [])]] : []
  const rest = more === '' ? '' : `<p>And ${text(more)}.</p>`
  return `<h3>By ${text(tableWords[by])}</h3>${table(`Cost by ${tableWords[by]}`, columns, [...rows, ...idleRow])}${rest}`
}

const money = (amount: number | undefined): string => (amount === undefined ? 'unknown' : decimalText(amount))

/** Names in the first column; a narrow window scrolls the table alone. */
export function table(
  label: string,
  columns: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const head = columns.map((column) => `<th scope="col">${text(column)}</th>`).join('')
  const body = rows.map(
    ([name = '', ...cells]) =>
      `<tr><th scope="row">${text(name)}</th>${cells.map((cell) => `<td>${text(cell)}</td>`).join('')}</tr>`,
  )
  return `<div class="table" tabindex="0" role="group" aria-label="${text(label)}"><table><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table></div>`
}
