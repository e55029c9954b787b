/** What was spent, and what it will be (page.md 2). */
import { useMemo, useRef } from 'preact/hooks'
import type { JSX } from 'preact'
import type { SpendAnswer, SpendFigures, WeekChange } from '../../answers/spend.ts'
import type { FoldedDecision } from '../../model/folded-decisions.ts'
import { csvField, localDay, localTime, priceText } from '../format.ts'
import { Answer, useLatest } from '../parts/answer.tsx'
import { saveText } from '../parts/copy.tsx'
import { Name } from '../parts/name.tsx'
import { type Band, StackPlot } from '../parts/stack-plot.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { When } from '../parts/when.tsx'
import { beginOf, edgesOf, type StepName, steps } from '../state/periods.ts'
import { choose, chosen } from '../state/router.ts'
import { nowMs } from '../state/store.ts'

const dimensions = [
  { name: 'nodepool', title: 'NodePool' },
  { name: 'namespace', title: 'Namespace' },
  { name: 'workload', title: 'Workload' },
  { name: 'label', title: 'Label' },
] as const

const [againMs, whileReadingMs] = [30_000, 1000]
/** A band for each beyond this would be too thin to see. */
const mostBands = 7

export function Spend(): JSX.Element {
  const by = dimensions.find(({ name }) => name === chosen('stack')) ?? dimensions[0]
  const step = steps.find(({ name }) => name === chosen('every')) ?? steps[1]
  const isReading = useRef(false)
  const path = pathOf(by.name, step)
  const version = Math.floor(nowMs.value / (isReading.current ? whileReadingMs : againMs))
  const asked = useLatest<SpendAnswer | { readonly absent: string }>(path, version, whileReadingMs)
  isReading.current = asked.kind === 'answered' && 'isReading' in asked.answer && asked.answer.isReading
  return (
    <section>
      <h2>Spent</h2>
      <div class="controls">
        <label>
          Stack by
          <select value={by.name} onChange={(event) => choose('stack', event.currentTarget.value)}>
            {dimensions.map(({ name, title }) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
        {asked.kind === 'answered' && !('absent' in asked.answer) && (
          <Choices by={by.name} answer={asked.answer} />
        )}
        <fieldset class="switch">
          <legend class="hidden">One bar for each</legend>
          {steps.map(({ name, title }) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === step.name}
              onClick={() => choose('every', name)}
            >
              {title}
            </button>
          ))}
        </fieldset>
      </div>
      <Answer asked={asked} awaits="what was spent and for whom">
        {(answer) =>
          'absent' in answer ? (
            <p class="empty">What was spent is not known: {answer.absent}.</p>
          ) : (
            <SpendOf answer={answer} title={by.title} step={step.name} />
          )
        }
      </Answer>
    </section>
  )
}

/** The same for an hour, so that it is asked again only when something may have changed. */
function pathOf(by: string, { name, shown }: (typeof steps)[number]): string {
  const now = nowMs.value
  const query = new URLSearchParams({
    by,
    edges: edgesOf(name, shown, now).join(','),
    midnight: String(beginOf('day', now)),
    month: String(beginOf('month', now)),
    monthEnd: String(beginOf('month', now, 1)),
  })
  for (const each of ['label', 'currency']) {
    const value = chosen(each)
    if (value !== undefined) query.set(each, value)
  }
  return `/api/spend?${query}`
}

function Choices({ answer, by }: { readonly answer: SpendAnswer; readonly by: string }): JSX.Element {
  const { currencies, currency, labels } = answer
  return (
    <>
      {by === 'label' && (
        <label>
          Label
          <select
            value={chosen('label') ?? ''}
            onChange={(event) => choose('label', event.currentTarget.value || undefined)}
          >
            <option value="">choose</option>
            {labels.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
      )}
      {currencies.length > 1 && (
        <label>
          Currency
          <select value={currency} onChange={(event) => choose('currency', event.currentTarget.value)}>
            {currencies.map((each) => (
              <option key={each} value={each}>
                {each === '' ? 'unnamed' : each}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  )
}

function SpendOf({
  answer,
  step,
  title,
}: {
  readonly answer: SpendAnswer
  readonly step: StepName
  readonly title: string
}): JSX.Element {
  const { changes, currency, isReading, unpricedHours } = answer
  const shown = useMemo(() => known(answer), [answer])
  const bands = useMemo(() => bandsOf(shown), [shown])
  const marks = changes.map((change) => ({
    id: change.id,
    atMs: change.atMs,
    isUp: (change.effect ?? 0) > 0,
    text: `${localTime(change.atMs, true)}: ${changeText(change)}, ${effectText(change)}`,
    href: hrefOf(change),
  }))
  const first = shown.edges[0] ?? 0
  return (
    <>
      {isReading && (
        <p class="empty" role="status">
          Older entries of the journal are being read; sums still grow.
        </p>
      )}
      <Figures answer={answer} />
      <StackPlot
        bands={bands}
        edges={shown.edges}
        marks={marks.filter(({ atMs }) => atMs >= first)}
        unit={`${currency} per ${step}`.trim()}
        hrefOf={(fromMs, toMs) => `/decisions?from=${fromMs}&to=${toMs}`}
      />
      <p class="quiet">
        A bar leads to its decisions; ▲ and ▼ are those that changed the price most.
        {unpricedHours > 0 &&
          ` ?${Math.round(unpricedHours)}: hours of instances without a known price, in no sum.`}
      </p>
      <p class="buttons">
        <button
          type="button"
          onClick={() => saveText(`spend-by-${answer.by}.csv`, 'text/csv', csvOf(answer))}
        >
          Export CSV
        </button>
        <button
          type="button"
          onClick={() => saveText(`spend-by-${answer.by}.json`, 'application/json', jsonOf(answer))}
        >
          Export JSON
        </button>
      </p>
      <Weeks answer={answer} title={title} />
      <Changes changes={changes} />
      <Groups answer={shown} title={title} />
    </>
  )
}

/** Without the periods before the journal, of which nothing is known. */
function known(answer: SpendAnswer): SpendAnswer {
  const { edges, fromMs = Number.POSITIVE_INFINITY, groups, idle, total, undivided } = answer
  const from = Math.min(edges.length - 2, Math.max(0, edges.findIndex((edge) => edge > fromMs) - 1))
  return {
    ...answer,
    edges: edges.slice(from),
    groups: groups.map((group) => ({ ...group, amounts: group.amounts.slice(from) })),
    idle: idle.slice(from),
    undivided: undivided.slice(from),
    total: total.slice(from),
  }
}

const sum = (amounts: readonly number[]) => amounts.reduce((all, each) => all + each, 0)

function bandsOf({ by, groups, idle, total, undivided }: SpendAnswer): readonly Band[] {
  const [first, others] = [groups.slice(0, mostBands), groups.slice(mostBands)]
  const bands: Band[] = first.map(({ amounts, name }) => ({
    label: groupText(by, name),
    kind: 'group',
    amounts,
  }))
  if (others.length > 0)
    bands.push({
      label: `${others.length} others`,
      kind: 'others',
      amounts: total.map((_, at) => sum(others.map(({ amounts }) => amounts[at] ?? 0))),
    })
  bands.push({ label: words.idle, kind: 'idle', amounts: idle })
  bands.push({ label: words.undivided, kind: 'undivided', amounts: undivided })
  return bands.filter(({ amounts }) => amounts.some((amount) => amount > 0))
}

const words = { idle: 'idle', undivided: 'not recorded for whom' } as const

function groupText(by: string, name: string | undefined): string {
  if (name !== undefined) return name
  return by === 'label'
    ? 'without the label'
    : by === 'nodepool'
      ? 'without a NodePool'
      : 'the smallest together'
}

function Figures({ answer }: { readonly answer: SpendAnswer }): JSX.Element {
  const { currency, figures, fromMs, pricePerHour, takenAtMs } = answer
  const { before7Days, forecast, last30Days, last7Days, month, today } = figures
  const amount = (value: number) => `${priceText(value, 2)} ${currency}`.trim()
  const rows: readonly (readonly [string, string, string])[] = [
    ['Since midnight', amount(today), ''],
    ['This month', amount(month), ''],
    ['Last 30 days', amount(last30Days), ''],
    ['Forecast to the end of the month', amount(forecast.amount), forecastText(figures, currency, takenAtMs)],
    [
      'Last 7 days',
      amount(last7Days),
      `${amount(Math.abs(last7Days - before7Days))} ${last7Days >= before7Days ? 'more' : 'less'} than in the 7 days before`,
    ],
    ['Now', `${priceText(pricePerHour)} ${currency} per hour`, ''],
  ]
  const monthMs = beginOf('month', takenAtMs)
  const isPart = fromMs !== undefined && fromMs > Math.min(monthMs, takenAtMs - 30 * dayMs)
  return (
    <>
      <dl class="spend-figures">
        {rows.map(([term, value, note]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>
              <strong>{value}</strong>
              {note !== '' && <small>{note}</small>}
            </dd>
          </div>
        ))}
      </dl>
      {isPart && (
        <p class="quiet">
          The journal begins on {localDay(fromMs)}, {localTime(fromMs, false)}: what was spent before is not
          known, and in no sum. A controller with <code>--journal-path</code> keeps it over restarts.
        </p>
      )}
    </>
  )
}

const dayMs = 24 * 3_600_000

function forecastText({ forecast }: SpendFigures, currency: string, takenAtMs: number): string {
  const { hoursLeft, meanHours, meanPerHour, spent } = forecast
  const mean =
    meanHours === 0
      ? 'the price of now'
      : meanHours >= 7 * 24 - 1
        ? 'the mean of the last 7 days'
        : `the mean of the last ${Math.round(meanHours)} h, as far as it is known`
  return `${priceText(spent, 2)} since ${localDay(beginOf('month', takenAtMs))}, and ${priceText(meanPerHour)} ${currency} per hour, ${mean}, for the ${Math.round(hoursLeft)} h left`
}

function signed(amount: number, digits: number): string {
  return `${amount < 0 ? '−' : '+'}${priceText(Math.abs(amount), digits)}`
}

function effectText({ currency = '', effect }: FoldedDecision): string {
  return effect === undefined ? '?' : `${signed(effect, 4)} ${currency} per hour`
}

const changeText = ({ kind, title }: FoldedDecision) => `${kind}: ${title}`

function hrefOf({ atMs, id }: FoldedDecision): string {
  return `/decisions?from=${atMs - 1_800_000}&to=${atMs + 1_800_000}&entry=${encodeURIComponent(id)}`
}

function Changes({ changes }: { readonly changes: readonly FoldedDecision[] }): JSX.Element | null {
  if (changes.length === 0) return null
  return (
    <section>
      <h3>What changed the price most</h3>
      <ul class="happening">
        {changes.map((change) => (
          <li key={change.id}>
            <When at={new Date(change.atMs).toISOString()} withDate /> {effectText(change)}{' '}
            <a href={hrefOf(change)}>{changeText(change)}</a>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Weeks({ answer, title }: { readonly answer: SpendAnswer; readonly title: string }): JSX.Element {
  const { by, currency, weeks } = answer
  const nameOf = ({ kind, name }: WeekChange) => (kind === 'group' ? groupText(by, name) : words[kind])
  const amount = (
    column: string,
    of: (change: WeekChange) => number,
    isSigned = false,
  ): Column<WeekChange> => ({
    title: column,
    cell: (change) => (isSigned ? signed(of(change), 2) : priceText(of(change), 2)),
    order: of,
    isNumber: true,
  })
  return (
    <section>
      <h3>Why more or less than last week</h3>
      <Table
        caption="The last 7 days and the 7 days before"
        columns={[
          { title, cell: (change) => <Name name={nameOf(change)} most={60} />, order: nameOf },
          amount(`7 days before, ${currency}`, ({ before }) => before),
          amount(`Last 7 days, ${currency}`, ({ last }) => last),
          amount('Change', ({ before, last }) => last - before, true),
        ]}
        rows={weeks}
        rowKey={({ kind, name = '' }) => `${kind} ${name}`}
        empty="Nothing changed."
      />
    </section>
  )
}

type Group = SpendAnswer['groups'][number]

function Groups({ answer, title }: { readonly answer: SpendAnswer; readonly title: string }): JSX.Element {
  const { by, currency, edges, groups, idle, total, undivided } = answer
  const all = sum(total)
  const amount = (column: string, of: (group: Group) => number): Column<Group> => ({
    title: column,
    cell: (group) => priceText(of(group), 2),
    order: of,
    isNumber: true,
  })
  return (
    <section>
      <h3>
        Since {localDay(edges[0] ?? 0)}: {priceText(all, 2)} {currency}
      </h3>
      {by !== 'nodepool' && (
        <p>
          Idle, which no pod requests: {priceText(sum(idle), 2)} {currency}.
          {sum(undivided) > 0 &&
            ` ${priceText(sum(undivided), 2)} ${currency} before the controller recorded for whom.`}
        </p>
      )}
      <Table
        caption={`Spent by ${title}`}
        columns={[
          {
            title,
            cell: ({ name }) => <Name name={groupText(by, name)} most={60} />,
            order: ({ name }) => name,
          },
          amount(`Spent, ${currency}`, ({ amounts }) => sum(amounts)),
          ...(by === 'nodepool' ? [amount('Of it idle', (group) => group.idle)] : []),
          {
            title: 'Share',
            cell: ({ amounts }) => (all > 0 ? `${((100 * sum(amounts)) / all).toFixed(1)} %` : '-'),
            order: ({ amounts }) => sum(amounts),
            isNumber: true,
          },
        ]}
        rows={groups}
        rowKey={({ name = '' }) => name}
        empty="Nothing was spent."
      />
    </section>
  )
}

/** Each group and period; amounts with all digits. */
function rowsOf({ by, edges, groups, idle, undivided }: SpendAnswer) {
  const named = [
    ...groups.map(({ amounts, name }) => ({ kind: 'group', name, amounts })),
    { kind: 'idle', name: undefined, amounts: idle },
    { kind: 'undivided', name: undefined, amounts: undivided },
  ]
  return named.flatMap(({ amounts, kind, name }) =>
    amounts.flatMap((amount, at) =>
      amount === 0
        ? []
        : [
            {
              from: new Date(edges[at] ?? 0).toISOString(),
              to: new Date(edges[at + 1] ?? 0).toISOString(),
              kind,
              [by]: name ?? null,
              amount,
            },
          ],
    ),
  )
}

function csvOf(answer: SpendAnswer): string {
  const { by, currency } = answer
  const lines: (readonly (string | number)[])[] = [
    ['from', 'to', 'kind', by, 'amount', 'currency'],
    ...rowsOf(answer).map((row) => [
      row.from,
      row.to,
      row.kind,
      String(row[by as keyof typeof row] ?? ''),
      row.amount,
      currency,
    ]),
  ]
  return lines.map((line) => `${line.map(csvField).join(',')}\r\n`).join('')
}

function jsonOf(answer: SpendAnswer): string {
  const { by, currency, figures, fromMs, takenAtMs, unpricedHours } = answer
  const label = chosen('label')
  return `${JSON.stringify(
    {
      by,
      ...(by === 'label' && label !== undefined && { label }),
      currency,
      takenAt: new Date(takenAtMs).toISOString(),
      ...(fromMs !== undefined && { journalFrom: new Date(fromMs).toISOString() }),
      figures,
      unpricedHours,
      spent: rowsOf(answer),
    },
    undefined,
    2,
  )}\n`
}
