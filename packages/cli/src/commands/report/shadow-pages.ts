/** The comparison as Markdown and as one page (adoption.md 2). */
import { headline, list, page, table, text } from './html.ts'
import { cell } from './markdown.ts'
import type { PrintedShadow } from './shadow.ts'
import {
  caseCells,
  caseColumns,
  coveredText,
  otherCasesText,
  shadowCaveats,
  shadowHeadlines,
} from './shadow-words.ts'
import { few } from './words.ts'

const title = 'Tenon beside the autoscaler that runs'

export function shadowMarkdown(report: PrintedShadow): string {
  const lines = [
    `# ${title}`,
    '',
    cell(coveredText(report)),
    '',
    ...(report.covered === undefined
      ? []
      : [
          ...shadowHeadlines(report).map(
            ({ title: what, figure, about }) => `- **${what}: ${figure}.** ${about}.`,
          ),
          '',
        ]),
    ...shadowCaveats(report).map((caveat) => `> ${cell(caveat)}\n>`),
    '',
    ...tables(report).flatMap(({ heading, columns, rows, more }) => [
      `## ${heading}`,
      '',
      `| ${columns.join(' | ')} |`,
      `|${columns.map(() => '---').join('|')}|`,
      ...rows.map((cells) => `| ${cells.map(cell).join(' | ')} |`),
      ...(more === '' ? [] : ['', `And ${more}.`]),
      '',
    ]),
  ]
  return `${lines
    .join('\n')
    .replaceAll(/\n>\n\n/g, '\n\n')
    .trimEnd()}\n`
}

export function shadowHtml(report: PrintedShadow): string {
  const figures =
    report.covered === undefined
      ? ''
      : `<dl class="figures">${shadowHeadlines(report).map(headline).join('')}</dl>`
  const sections = tables(report).map(
    ({ heading, columns, rows, more }, at) => `<section aria-labelledby="section-${at}">
<h2 id="section-${at}">${heading}</h2>
${table(heading, columns, rows)}${more === '' ? '' : `<p>And ${text(more)}.</p>`}
</section>`,
  )
  return page(
    { title, at: report.takenAt, about: [coveredText(report)] },
    `<section aria-labelledby="figures">
<h2 id="figures">In short</h2>
${figures}
${list(shadowCaveats(report), 'caveats')}
</section>
${sections.join('\n')}`,
  )
}

interface Table {
  readonly heading: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** What the table lacks. */
  readonly more: string
}

const shownRows = 50

function tables(report: PrintedShadow): readonly Table[] {
  const { cases, launches, leftPodCount, leftPods } = report
  const { byType } = launches
  const types = byType.slice(0, shownRows)
  const all: readonly Table[] = [
    {
      heading: 'Pods that Tenon would have left without a node',
      columns: ['Pod', 'Node that it got', 'At', 'Why'],
      rows: leftPods.map(({ at, node, pod, why }) => [pod, node, at, why]),
      more: leftPodCount > leftPods.length ? `${leftPodCount - leftPods.length} more` : '',
    },
    {
      heading: 'Where costs differ',
      columns: caseColumns,
      rows: cases.map(caseCells),
      more: otherCasesText(report),
    },
    {
      heading: 'Launches for pods',
      columns: ['Type', 'As it was', 'With Tenon'],
      rows: types.map(({ instanceType, other, tenon }) => [instanceType, String(other), String(tenon)]),
      more:
        byType.length > types.length
          ? few(
              byType.slice(types.length).map(({ instanceType }) => instanceType),
              byType.length - types.length,
              3,
            )
          : '',
    },
  ]
  return all.filter(({ rows }) => rows.length > 0)
}
