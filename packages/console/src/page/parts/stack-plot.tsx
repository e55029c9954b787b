/** Amounts by period as stacked bars. Plain SVG, so that its text is text and its parts are links. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { JSX } from 'preact'
import { localTime, priceText } from '../format.ts'
import { Name } from './name.tsx'

export interface Band {
  readonly label: string
  readonly kind: 'group' | 'others' | 'idle' | 'undivided'
  /** Per period. */
  readonly amounts: readonly number[]
}

/** A change on the time axis. */
interface LinkedMark {
  readonly id: string
  readonly atMs: number
  readonly isUp: boolean
  readonly text: string
  readonly href: string
}

const [height, top, bottom, left] = [260, 12, 40, 64]
const markSize = 9

export function StackPlot({
  bands,
  edges,
  marks,
  unit,
  hrefOf,
}: {
  readonly bands: readonly Band[]
  /** Bounds of the periods, in Unix milliseconds. */
  readonly edges: readonly number[]
  readonly marks: readonly LinkedMark[]
  /** Such as `EUR per day`. */
  readonly unit: string
  /** Where a period leads. */
  readonly hrefOf: (fromMs: number, toMs: number) => string
}): JSX.Element {
  const place = useRef<HTMLElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const element = place.current
    if (element === null) return undefined
    const fit = new ResizeObserver(() => {
      const { paddingLeft, paddingRight } = getComputedStyle(element)
      setWidth(element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight))
    })
    fit.observe(element)
    return () => {
      fit.disconnect()
    }
  }, [])
  const totals = edges
    .slice(1)
    .map((_, at) => bands.reduce((sum, { amounts }) => sum + (amounts[at] ?? 0), 0))
  const ticks = ticksUpTo(Math.max(...totals, 0))
  const most = ticks.at(-1) ?? 1
  const [fromMs = 0, toMs = 1] = [edges[0], edges.at(-1)]
  const inner = Math.max(1, width - left)
  const x = (ms: number) => left + (inner * (ms - fromMs)) / (toMs - fromMs)
  const y = (amount: number) => top + (height - top - bottom) * (1 - amount / most)
  return (
    <figure class="plot stack" ref={place}>
      <figcaption>
        <span>{unit}</span>
        {bands.map((band, at) => (
          <span key={`${band.kind} ${band.label}`}>
            <svg class="band-key" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
              <Fill at={at} band={band} x={0} y={0} width={14} height={14} />
            </svg>{' '}
            <Name name={band.label} most={40} />
          </span>
        ))}
      </figcaption>
      {width > 0 && (
        <svg
          class="bars"
          width={width}
          height={height}
          role="group"
          aria-label={`${unit}, ${totals.length} periods, ${priceText(Math.min(...totals), 2)} to ${priceText(Math.max(...totals), 2)}`}
        >
          {ticks.map((tick) => (
            <g key={tick} class="tick">
              <line x1={left} x2={width} y1={y(tick)} y2={y(tick)} />
              <text x={left - 6} y={y(tick) + 4} text-anchor="end">
                {amountText(tick)}
              </text>
            </g>
          ))}
          {totals.map((total, at) => {
            const [start = 0, end = 0] = [edges[at], edges[at + 1]]
            const [from, to] = [x(start), x(end)]
            const gap = Math.min(4, (to - from) * 0.15)
            let reached = 0
            return (
              <a
                key={start}
                class="bar-link"
                href={hrefOf(start, end)}
                aria-label={`${localTime(start, true)}: ${priceText(total, 2)} ${unit}`}
              >
                <title>{titleOf(start, total, bands, at)}</title>
                <rect class="column" x={from} y={top} width={to - from} height={height - top - bottom} />
                {bands.map((band, index) => {
                  const amount = band.amounts[at] ?? 0
                  if (amount <= 0) return null
                  const base = y(reached)
                  reached += amount
                  return (
                    <Fill
                      key={`${band.kind} ${band.label}`}
                      at={index}
                      band={band}
                      x={from + gap / 2}
                      y={y(reached)}
                      width={Math.max(1, to - from - gap)}
                      height={base - y(reached)}
                    />
                  )
                })}
              </a>
            )
          })}
          {timesOf(edges, inner).map((ms) => (
            <text key={ms} class="time" x={x(ms)} y={height - 6} text-anchor="start">
              {timeText(ms, fromMs, toMs)}
            </text>
          ))}
          {marks.map(({ atMs, href, id, isUp, text }) => (
            <a key={id} class={isUp ? 'mark up' : 'mark down'} href={href} aria-label={text}>
              <title>{text}</title>
              <rect x={x(atMs) - 12} y={height - bottom} width={24} height={24} class="hit" />
              <path d={triangle(x(atMs), height - bottom + 12, isUp)} />
            </a>
          ))}
        </svg>
      )}
    </figure>
  )
}

function triangle(x: number, y: number, isUp: boolean): string {
  const tip = isUp ? -markSize / 2 : markSize / 2
  return `M${x} ${y + tip}L${x - markSize / 2} ${y - tip}L${x + markSize / 2} ${y - tip}Z`
}

const colors = 4

/** Colour alone tells nobody who does not see it: further bands, idle and unknown ones are striped. */
function Fill({
  at,
  band: { kind },
  ...box
}: {
  readonly at: number
  readonly band: Pick<Band, 'kind'>
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}): JSX.Element {
  const name = kind === 'group' ? `series-${(at % colors) + 1}` : kind
  const isStriped = kind !== 'group' || at >= colors
  return (
    <g class={`band ${name}`}>
      <rect class="solid" {...box} />
      {isStriped && <path class="stripes" d={stripes(box)} />}
    </g>
  )
}

/** Horizontal lines: a pattern would need an address of its own. */
function stripes({
  height: tall,
  width,
  x,
  y,
}: {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}): string {
  const lines: string[] = []
  for (let line = Math.ceil(y / 4) * 4 + 2; line < y + tall; line += 4) lines.push(`M${x} ${line}h${width}`)
  return lines.join('')
}

const mostInTitle = 8

function titleOf(startMs: number, total: number, bands: readonly Band[], at: number): string {
  const lines = bands
    .map(({ amounts, label }) => ({ label, amount: amounts[at] ?? 0 }))
    .filter(({ amount }) => amount > 0)
    .toSorted((a, b) => b.amount - a.amount)
    .slice(0, mostInTitle)
    .map(({ amount, label }) => `${label}: ${priceText(amount, 2)}`)
  return [`${localTime(startMs, true)}: ${priceText(total, 2)}`, ...lines].join('\n')
}

/** Round amounts from 0 to above the largest. */
function ticksUpTo(most: number): readonly number[] {
  if (!(most > 0)) return [0, 1]
  const rough = most / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10) * power
  return Array.from({ length: Math.ceil((most * 1.02) / step) + 1 }, (_, at) => at * step)
}

function amountText(amount: number): string {
  return amount === 0 ? '0' : Number(amount.toPrecision(6)).toString()
}

/** Beginnings of periods that have room for their text. */
function timesOf(edges: readonly number[], width: number): readonly number[] {
  const begins = edges.slice(0, -1)
  const every = Math.max(1, Math.ceil((begins.length * 84) / width))
  return begins.filter((_, at) => at % every === 0 && at + every / 2 <= begins.length)
}

const month = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short' })
const dayOfMonth = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })

function timeText(ms: number, fromMs: number, toMs: number): string {
  const days = (toMs - fromMs) / (24 * 3_600_000)
  return days > 120 ? month.format(ms) : days > 4 ? dayOfMonth.format(ms) : localTime(ms, true)
}
