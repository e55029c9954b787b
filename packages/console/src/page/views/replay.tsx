import { counted } from '@tenon/api/counted'
import { useMemo, useState } from 'preact/hooks'
import type { JSX } from 'preact'
import type { ReplayAnswer, ReplayedVariant } from '../../answers/facts.ts'
import { localTime, priceText, utcTime } from '../format.ts'
import { Answer, useAnswer } from '../parts/answer.tsx'
import { Name } from '../parts/name.tsx'
import { StepPlot } from '../parts/plot.tsx'
import { Table, type Column } from '../parts/table.tsx'

const hourMs = 3_600_000

/** A recording with several variants of settings, and a slider over its time. */
export function ReplayView(): JSX.Element {
  const asked = useAnswer<ReplayAnswer | { readonly absent: string }>('/api/replay')
  return (
    <Answer asked={asked} awaits="the recording, and its replay with each variant">
      {(answer) =>
        'absent' in answer ? (
          <p class="empty">There is nothing to replay: {answer.absent}</p>
        ) : (
          <Replay replay={answer} />
        )
      }
    </Answer>
  )
}

const columns: readonly Column<ReplayedVariant>[] = [
  { title: 'Variant', cell: ({ name }) => <Name name={name} /> },
  {
    title: 'Price',
    cell: ({ price }) => (price === undefined ? 'unknown' : price.toFixed(2)),
    order: ({ price }) => price,
    isNumber: true,
  },
  { title: 'Launches', cell: ({ launches }) => launches, order: ({ launches }) => launches, isNumber: true },
  {
    title: 'Evictions',
    cell: ({ evictions }) => evictions,
    order: ({ evictions }) => evictions,
    isNumber: true,
  },
  {
    title: 'Peak nodes',
    cell: ({ peakNodes }) => peakNodes,
    order: ({ peakNodes }) => peakNodes,
    isNumber: true,
  },
  { title: 'Pending, median', cell: ({ pendingMedianMs }) => secondsText(pendingMedianMs), isNumber: true },
  { title: 'Pending, p99', cell: ({ pendingP99Ms }) => secondsText(pendingP99Ms), isNumber: true },
]

function secondsText(ms: number | undefined): string {
  return ms === undefined ? '-' : `${(ms / 1000).toFixed(0)} s`
}

function Replay({ replay }: { readonly replay: ReplayAnswer }): JSX.Element {
  const { fromMs, gaps, source, toMs, variants } = replay
  const [atMs, setAtMs] = useState(fromMs)
  const lines = useMemo(
    () =>
      variants
        .filter(({ hours, price }) => hours.length > 0 && price !== undefined)
        .map(({ hours, name }) => ({
          label: name,
          points: hours.map(({ cost, startMs }) => ({ atMs: startMs, value: cost })),
        })),
    [variants],
  )
  return (
    <>
      <p>
        {source}, {((toMs - fromMs) / hourMs).toFixed(1)} h from{' '}
        <span title={utcTime(fromMs)}>{localTime(fromMs, true)}</span>
        {gaps.length > 0 && `; ${counted(gaps.length, 'gap')} of which nothing is known`}
      </p>
      <Table caption="Variants" columns={columns} rows={variants} rowKey={({ name }) => name} />
      <h2>Price of each hour</h2>
      <StepPlot lines={lines} fromMs={fromMs} toMs={toMs} unit="" what="price of an hour" />
      <label class="slider">
        Time
        <input
          type="range"
          min={fromMs}
          max={toMs}
          step={hourMs}
          value={atMs}
          aria-valuetext={localTime(atMs, true)}
          onInput={(event) => setAtMs(Number(event.currentTarget.value))}
        />
        <output title={utcTime(atMs)}>{localTime(atMs, true)}</output>
      </label>
      <div class="two">
        {variants.map((variant) => (
          <Moment key={variant.name} variant={variant} atMs={atMs} />
        ))}
      </div>
    </>
  )
}

function Moment({
  atMs,
  variant,
}: {
  readonly atMs: number
  readonly variant: ReplayedVariant
}): JSX.Element {
  const hour = variant.hours.findLast(({ startMs }) => startMs <= atMs)
  const until = variant.hours
    .filter(({ startMs }) => startMs <= atMs)
    .reduce((sum, { cost }) => sum + cost, 0)
  return (
    <section class="card">
      <h3>
        <Name name={variant.name} most={60} />
      </h3>
      {hour === undefined ? (
        <p class="empty">Nothing is known of this hour.</p>
      ) : variant.price === undefined ? (
        <p>
          The price of some nodes is not known. {hour.instanceHours.toFixed(1)} instance hours in this hour.
        </p>
      ) : (
        <>
          <p class="big">
            {priceText(hour.cost)} <small>in this hour</small>
          </p>
          <p>
            {hour.instanceHours.toFixed(1)} instance hours in it, {until.toFixed(2)} paid until its end
          </p>
        </>
      )}
    </section>
  )
}
