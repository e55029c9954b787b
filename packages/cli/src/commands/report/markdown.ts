/** The report as Markdown, which a terminal and an issue show alike. */
import { reportedDimensions } from '@tenon/ask/report'
import type { PrintedReport } from './printed.ts'
import {
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

export function markdownOf(report: PrintedReport): string {
  const lines = [
    '# Cluster report',
    '',
    cell(report.source),
    cell(autoscalerText(report)),
    '',
    ...headlines(report).map(({ title, figure, about }) => `- **${title}: ${figure}.** ${about}.`),
    '',
    ...caveats(report).map((caveat) => `> ${cell(caveat)}`),
    '',
    '## What stands in the way',
    '',
    ...obstacleLines(report),
    '',
    '## Risks',
    '',
    ...riskLines(report),
    '',
    ...nextLines(report),
    '## What it costs now',
    ...costLines(report),
  ]
  return `${lines.join('\n')}\n`
}

function obstacleLines(report: PrintedReport): readonly string[] {
  if (report.obstacles.length === 0) return ['Nothing that was looked for.']
  return report.obstacles.flatMap((obstacle) => {
    const { kind, nodes, items, itemCount, pods } = obstacle
    const { title, fix } = obstacleWords[kind]
    const { figure, meaning } = obstacleCost(obstacle, report)
    return [
      `- **${title}**: ${figure}${meaning}; ${countText(pods, 'pod')} on ${countText(nodes, 'node')}. ${fix}`,
      `  ${few(
        items.map(({ name }) => `\`${cell(name)}\``),
        itemCount,
      )}`,
    ]
  })
}

function riskLines({ risks }: PrintedReport): readonly string[] {
  if (risks.length === 0) return ['None that was looked for.']
  return risks.flatMap(({ kind, items, itemCount }) => {
    const { title, fix } = riskWords[kind]
    const names = items.map(
      ({ name, detail }) => `\`${cell(name)}\`${detail === undefined ? '' : ` (${cell(detail)})`}`,
    )
    return [`- **${title}** (${itemCount}). ${fix}`, `  ${few(names, itemCount)}`]
  })
}

function nextLines({ next }: PrintedReport): readonly string[] {
  return next.flatMap(({ title, file, commands }) => [
    `## Next: ${title}`,
    '',
    ...(file === undefined ? [] : [`${file.name}:`, '', '```', file.text.trimEnd(), '```', '']),
    '```sh',
    ...commands,
    '```',
    '',
  ])
}

function costLines(report: PrintedReport): readonly string[] {
  return reportedDimensions.flatMap((by) => {
    const { groups, idlePerMonth, more } = shortened(report.cost[by])
    const byPods = by === 'namespace' || by === 'owner'
    return [
      '',
      `| ${tableWords[by]} | ${byPods ? 'Pods' : 'Nodes'} | ${report.currency ?? 'Price'}/month | Idle | Unpriced |`,
      '|---|--:|--:|--:|--:|',
      ...groups.map(
        ({ name = '(none)', instances, pods, perMonth, idlePerMonth: idle, unpriced }) =>
          `| ${cell(name)} | ${instances ?? pods} | ${money(perMonth)} | ${byPods ? '' : money(idle)} | ${unpriced} |`,
      ),
      ...(byPods ? [`| (idle) | | ${money(idlePerMonth)} | ${money(idlePerMonth)} | |`] : []),
      ...(more === '' ? [] : ['', `and ${more}`]),
    ]
  })
}

const money = (amount: number | undefined): string => (amount === undefined ? 'unknown' : decimalText(amount))

/** Without what could end a line or a cell, or begin a tag or a link. */
export function cell(text: string): string {
  return text.replaceAll(/[|`\r\n<[]/g, ' ')
}
