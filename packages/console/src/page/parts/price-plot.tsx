import { useMemo } from 'preact/hooks'
import type { JSX } from 'preact'
import type { PriceHistory } from '../../answers/price-history.ts'
import { choose, chosen } from '../state/router.ts'
import { header, nowMs, seenPrices, versionOf } from '../state/store.ts'
import { Answer, useAnswer } from './answer.tsx'
import { type Mark, type Point, StepPlot } from './plot.tsx'

const hourMs = 3_600_000
const ranges = [
  { title: 'Hour', ms: hourMs },
  { title: 'Day', ms: 24 * hourMs },
  { title: 'Week', ms: 7 * 24 * hourMs },
] as const

/** The recent price per hour, with launches and removals. */
export function PricePlot(): JSX.Element {
  const given = chosen('range')
  const range = ranges.find(({ title }) => title.toLowerCase() === given) ?? ranges[0]
  const asked = useAnswer<PriceHistory | { readonly absent: string }>(
    '/api/prices',
    versionOf('decisions'),
    5000,
  )
  return (
    <>
      <div class="controls">
        <fieldset class="switch">
          <legend class="hidden">Time shown</legend>
          {ranges.map((each) => (
            <button
              key={each.title}
              type="button"
              aria-pressed={each === range}
              onClick={() => choose('range', each.title.toLowerCase())}
            >
              {each.title}
            </button>
          ))}
        </fieldset>
      </div>
      <Answer asked={asked} awaits="the prices of the past">
        {(history) => <Plot history={history} ms={range.ms} />}
      </Answer>
    </>
  )
}

function Plot({
  history,
  ms,
}: {
  readonly history: PriceHistory | { readonly absent: string }
  readonly ms: number
}): JSX.Element {
  const seen = seenPrices.value
  const steps = 'absent' in history ? undefined : history.steps
  // Updates every 15 seconds, and when the price changes.
  const toMs = Math.ceil(nowMs.value / 15_000) * 15_000
  const points = useMemo<readonly Point[]>(() => {
    if (steps === undefined) return seen.map(({ atMs, pricePerHour }) => ({ atMs, value: pricePerHour }))
    const last = steps.at(-1)?.atMs ?? 0
    return [
      ...steps.map(({ atMs, pricePerHour }) => ({ atMs, value: pricePerHour })),
      ...seen
        .filter(({ atMs }) => atMs > last)
        .map(({ atMs, pricePerHour }) => ({ atMs, value: pricePerHour })),
    ]
  }, [steps, seen])
  const marks = useMemo<readonly Mark[]>(
    () =>
      (steps ?? []).flatMap(({ atMs, launched, removed }) => [
        ...(launched > 0 ? [{ atMs, kind: 'launched' as const, count: launched }] : []),
        ...(removed > 0 ? [{ atMs, kind: 'removed' as const, count: removed }] : []),
      ]),
    [steps],
  )
  const lines = useMemo(() => [{ label: 'Price', points }], [points])
  const inTime = useMemo(() => marks.filter(({ atMs }) => atMs >= toMs - ms), [marks, toMs, ms])
  return (
    <>
      <StepPlot
        lines={lines}
        marks={inTime}
        fromMs={toMs - ms}
        toMs={toMs}
        unit={header.value?.currency ?? ''}
        what="Price per hour"
      />
      {'absent' in history && (
        <p class="quiet">Only of the time since this page was opened: {history.absent}.</p>
      )}
      {!('absent' in history) && history.unpriced > 0 && (
        <p class="quiet">{history.unpriced} launches and removals have no known price, and are in no sum.</p>
      )}
    </>
  )
}
