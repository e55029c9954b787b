import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { JSX } from 'preact'
import uPlot from 'uplot'
import { localTime, priceText } from '../format.ts'
import { Name } from './name.tsx'

export interface Point {
  readonly atMs: number
  readonly value: number
}

export interface Line {
  readonly label: string
  readonly points: readonly Point[]
}

/** An event on the time axis. */
export interface Mark {
  readonly atMs: number
  readonly kind: 'launched' | 'removed'
  readonly count: number
}

const height = 220

/** Values over time as steps, with a text alternative. */
export function StepPlot({
  lines,
  marks = [],
  fromMs,
  toMs,
  unit,
  what,
  selected,
  onSelect,
}: {
  readonly lines: readonly Line[]
  readonly marks?: readonly Mark[]
  readonly fromMs: number
  readonly toMs: number
  readonly unit: string
  /** Such as `Price per hour`. */
  readonly what: string
  /** A part of the time that is marked, in Unix milliseconds. */
  readonly selected?: readonly [number, number]
  /** Called with the part of the time over which the pointer was dragged. */
  readonly onSelect?: (fromMs: number, toMs: number) => void
}): JSX.Element {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const range = useRef<[number, number]>([0, 0])
  range.current = [fromMs / 1000, toMs / 1000]
  const select = useRef(onSelect)
  select.current = onSelect
  const shown = useMemo(() => lines.map((line) => clipped(line.points, fromMs, toMs)), [lines, fromMs, toMs])
  const data = useMemo(() => joined(shown, marks, fromMs, toMs), [shown, marks, fromMs, toMs])
  useEffect(() => {
    const element = place.current
    if (element === null) return undefined
    const made = new uPlot(
      optionsOf(
        lines.length,
        element,
        () => range.current,
        onSelect && ((from, to) => select.current?.(from, to)),
      ),
      data,
      element,
    )
    plot.current = made
    const fit = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height })
    })
    fit.observe(element)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const redraw = () => {
      made.redraw(false, true)
    }
    scheme.addEventListener('change', redraw)
    return () => {
      fit.disconnect()
      scheme.removeEventListener('change', redraw)
      made.destroy()
    }
  }, [lines.length])
  useEffect(() => {
    plot.current?.setData(data)
  }, [data])
  const [selectedFrom, selectedTo] = selected ?? []
  useEffect(() => {
    const { current } = plot
    if (current === undefined || onSelect === undefined) return undefined
    const mark = () => {
      const [from, to] = [selectedFrom ?? fromMs, selectedTo ?? fromMs].map((ms) =>
        current.valToPos(Math.min(Math.max(ms, fromMs), toMs) / 1000, 'x'),
      )
      current.setSelect(
        { left: from ?? 0, width: (to ?? 0) - (from ?? 0), top: 0, height: current.over.clientHeight },
        false,
      )
    }
    mark()
    // The plot is as wide as its frame only after its first layout.
    const fit = new ResizeObserver(mark)
    fit.observe(current.over)
    return () => {
      fit.disconnect()
    }
  }, [data, selectedFrom, selectedTo])
  return (
    <figure class="plot">
      <div ref={place} aria-hidden="true" />
      <figcaption>
        {lines.map((line, at) => (
          <span key={line.label}>
            {lines.length > 1 && (
              <>
                <LineKey at={at} /> <Name name={line.label} most={60} />:{' '}
              </>
            )}
            {summaryOf(what, shown[at] ?? [], unit) ??
              (lines.length > 1 ? 'nothing is known.' : 'Nothing is known.')}
          </span>
        ))}
        {marks.length > 0 && (
          <span>
            {countOf(marks, 'launched')} launched <span aria-hidden="true">(▲)</span>,{' '}
            {countOf(marks, 'removed')} removed <span aria-hidden="true">(▼)</span>
          </span>
        )}
      </figcaption>
    </figure>
  )
}

function countOf(marks: readonly Mark[], kind: Mark['kind']): number {
  return marks.filter((mark) => mark.kind === kind).reduce((sum, { count }) => sum + count, 0)
}

/** Lines differ by dash pattern too, as colour alone is not accessible. */
const dashes = [[], [9, 4], [3, 3], [12, 3, 3, 3]] as const
const colors = 4

function lookOf(at: number): { readonly dash: readonly number[]; readonly color: string } {
  const round = Math.floor(at / dashes.length)
  return { dash: dashes[at % dashes.length] ?? [], color: `--series-${((at + round) % colors) + 1}` }
}

/** The legend of a line. */
function LineKey({ at }: { readonly at: number }): JSX.Element {
  const { color, dash } = lookOf(at)
  return (
    <svg class="line-key" viewBox="0 0 28 8" width="28" height="8" aria-hidden="true">
      <line
        x1="0"
        y1="4"
        x2="28"
        y2="4"
        stroke={`var(${color})`}
        stroke-width="2"
        {...(dash.length > 0 && { 'stroke-dasharray': dash.join(' ') })}
      />
    </svg>
  )
}

/** @returns undefined if there are no points. */
function summaryOf(what: string, points: readonly Point[], unit: string): string | undefined {
  const values = points.map(({ value }) => value)
  if (values.length === 0) return undefined
  return `${what} from ${priceText(Math.min(...values))} to ${`${priceText(Math.max(...values))} ${unit}`.trimEnd()}, last ${priceText(values.at(-1))}.`
}

/** The points of the visible range, with the values at its beginning and end. */
function clipped(points: readonly Point[], fromMs: number, toMs: number): readonly Point[] {
  const before = points.findLast(({ atMs }) => atMs <= fromMs)
  const inside = points.filter(({ atMs }) => atMs > fromMs && atMs <= toMs)
  const all = [...(before === undefined ? [] : [{ atMs: fromMs, value: before.value }]), ...inside]
  const last = all.at(-1)
  return last === undefined || last.atMs === toMs ? all : [...all, { atMs: toMs, value: last.value }]
}

/** Aligns all lines on common times, in seconds. */
function joined(
  lines: readonly (readonly Point[])[],
  marks: readonly Mark[],
  fromMs: number,
  toMs: number,
): uPlot.AlignedData {
  const inTime = marks.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs)
  const times = [
    ...new Set([...lines.flat().map(({ atMs }) => atMs), ...inTime.map(({ atMs }) => atMs)]),
  ].sort((a, b) => a - b)
  const values = lines.map((points) => {
    let at = -1
    return times.map((time) => {
      while ((points[at + 1]?.atMs ?? Number.POSITIVE_INFINITY) <= time) at++
      return points[at]?.value ?? null
    })
  })
  const at = (kind: Mark['kind']) => {
    const marked = new Set(inTime.filter((mark) => mark.kind === kind).map(({ atMs }) => atMs))
    return times.map((time, index) => (marked.has(time) ? (values[0]?.[index] ?? null) : null))
  }
  return [times.map((time) => time / 1000), ...values, at('launched'), at('removed')] as uPlot.AlignedData
}

function optionsOf(
  lines: number,
  element: HTMLElement,
  timeRange: () => [number, number],
  onSelect: ((fromMs: number, toMs: number) => void) | undefined,
): uPlot.Options {
  const css = (name: string) => () => getComputedStyle(element).getPropertyValue(name).trim()
  const stepped = uPlot.paths.stepped?.({ align: 1 })
  const axis = {
    stroke: css('--quiet'),
    grid: { stroke: css('--line'), width: 1 },
    ticks: { stroke: css('--line'), width: 1 },
  }
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { drag: { x: onSelect !== undefined, y: false, setScale: false, dist: 4 } },
    hooks: {
      setSelect: [
        (plot) => {
          const { left, width } = plot.select
          if (width > 0) onSelect?.(plot.posToVal(left, 'x') * 1000, plot.posToVal(left + width, 'x') * 1000)
        },
      ],
    },
    scales: {
      x: { range: () => timeRange() },
      y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.15 : 1] },
    },
    axes: [
      {
        ...axis,
        // Days take more room than times.
        space: () => (isOfDays(timeRange()) ? 110 : 50),
        values: (_plot, splits) => splits.map((each) => tickText(each * 1000, timeRange())),
      },
      { ...axis, size: 60 },
    ],
    series: [
      {},
      ...Array.from({ length: lines }, (_, at) => lookOf(at)).map(({ color, dash }) => ({
        stroke: css(color),
        dash: [...dash],
        width: 2,
        ...(stepped !== undefined && { paths: stepped }),
        points: { show: false },
      })),
      ...(['launched', 'removed'] as const).map((kind) => ({
        label: kind,
        paths: () => null,
        points: {
          show: true,
          size: 8,
          stroke: css(kind === 'launched' ? '--good' : '--bad'),
          fill: css(kind === 'launched' ? '--good' : '--bad'),
          paths: trianglesOf(kind),
        },
      })),
    ],
  }
}

/** Up for added, down for removed: colour alone is not accessible. */
function trianglesOf(kind: Mark['kind']): uPlot.Series.Points.PathBuilder {
  const side = 5 * devicePixelRatio
  const up = kind === 'launched' ? -1 : 1
  return (plot, seriesIndex, from, to) => {
    const path = new Path2D()
    const values = plot.data[seriesIndex] ?? []
    for (let at = from; at <= to; at++) {
      const value = values[at]
      if (value === null || value === undefined) continue
      const x = plot.valToPos(plot.data[0][at] ?? 0, 'x', true)
      const y = plot.valToPos(value, 'y', true)
      path.moveTo(x, y + up * 2 * side)
      path.lineTo(x - side, y + up * side * 0.2)
      path.lineTo(x + side, y + up * side * 0.2)
      path.closePath()
    }
    return { stroke: path, fill: path }
  }
}

/** Shows the day if the range spans several. */
function tickText(ms: number, range: readonly [number, number]): string {
  return isOfDays(range) ? localTime(ms, true) : localTime(ms, false).slice(0, 5)
}

function isOfDays([from, to]: readonly [number, number]): boolean {
  return to - from > 25 * 3600
}
