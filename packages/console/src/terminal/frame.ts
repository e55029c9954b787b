/** Draws one screen as lines (console.md 2). */
import { counted, ownValue } from '@tenon/api'
import type { Header } from '../model/view.ts'
import { shownText } from '../text/shown.ts'
import { clipped, padded, widthOf } from '../text/width.ts'
import { ageText, amountText, barText, durationText, lookOf, partOf, sumText } from './amounts.ts'
import type { CellFacts, Column } from './columns/column.ts'
import { claimColumns, nodeColumns, resourceCell, resourceLine } from './columns/nodes.ts'
import {
  costColumns,
  decisionColumns,
  groupColumns,
  pendingPodColumns,
  podColumns,
  poolColumns,
} from './columns/others.ts'
import { placed, type Placed, rowLine, titleLine } from './layout.ts'
import type { AnyRow } from './lists.ts'
import type { Paint } from './paint.ts'
import { type Detail, tabs, type ViewerState } from './state.ts'

/** Smaller screens only show that they are too small. */
const leastSize = { columns: 60, rows: 16 } as const

/** From here on names of resources and all counts have room. */
const roomyWidth = 80
/** What stands before the bar of a resource. */
const besideBar = 35

export interface Size {
  readonly columns: number
  readonly rows: number
}

export interface Scene {
  readonly state: ViewerState
  readonly header: Header
  /** Of the tabs. */
  readonly counts: Readonly<Record<(typeof tabs)[number], number | undefined>>
  /** All rows of the place, in order. */
  readonly rows: readonly AnyRow[]
  /** Index of the first visible row. */
  readonly offset: number
  /** Why the place has no rows, or what its costs omit. */
  readonly hint: string | undefined
  readonly source: string
  /** The time of a recording. */
  readonly slider?: string
  readonly facts: CellFacts
}

export class FrameMaker {
  readonly #paint: Paint
  /** Widths of columns by place, so that tables do not jump. */
  readonly #widths = new Map<string, Map<string, number>>()

  constructor(paint: Paint) {
    this.#paint = paint
  }

  /** Number of table rows that fit, or of lines if a detail is shown. */
  pageOf(size: Size, { state, header, facts }: Pick<Scene, 'state' | 'header' | 'facts'>): number {
    const foot = state.detail === undefined && hasReasons(state) ? 2 : 1
    const body = size.rows - this.#head(size.columns, { header, facts }).length - 2 - foot
    // One line is for the titles.
    if (state.detail !== undefined) return Math.max(1, body - 1)
    const each = state.place.tab === 'nodes' ? Math.max(1, facts.resources.length) : 1
    return Math.max(1, Math.floor((body - 1) / each))
  }

  /** The wrapped lines of the detail that is shown instead of the table. */
  detailLines(
    { columns }: Pick<Size, 'columns'>,
    { lead = [], lines = ['asking…'] }: Detail,
  ): readonly string[] {
    return [...lead, ...lines].flatMap((line) => wrappedLine(shownText(line), columns))
  }

  /** Exactly as many lines as the screen has. */
  frame(size: Size, scene: Scene): readonly string[] {
    if (size.columns < leastSize.columns || size.rows < leastSize.rows) return tooSmall(size)
    const head = [...this.#head(size.columns, scene), this.#tabLine(size.columns, scene), '']
    const foot = this.#foot(size.columns, scene)
    const room = size.rows - head.length - foot.length
    const body = scene.state.detail === undefined ? this.#table(size, scene) : this.#detail(size, scene, room)
    const shown = body.slice(0, room)
    return [...head, ...shown, ...Array<string>(Math.max(0, room - shown.length)).fill(''), ...foot]
  }

  #head(width: number, scene: Pick<Scene, 'facts' | 'header' | 'slider'>): readonly string[] {
    const { facts, header, slider } = scene
    const { nodes, pendingNodes, pods, price, currency, staleSince } = header
    const paint = this.#paint
    const pending = pendingNodes === 0 ? '' : ` +${pendingNodes} pending`
    const stale =
      staleSince === undefined ? '' : `STALE since ${staleSince} (${ageText(staleSince, facts.nowMs)})`
    const left = `${counted(nodes, 'node')}${pending}`
    const sum = facts.hasPricing ? `  ${sumText(price, currency)}` : ''
    const first = clipped(left + shownText(sum), width - (stale === '' ? 0 : widthOf(stale) + 1))
    const gap = ' '.repeat(Math.max(1, width - widthOf(first) - widthOf(stale)))
    const podLine =
      pods === undefined
        ? 'pods: not known'
        : `${counted(pods.total, 'pod')}: ${pods.pending} pending, ${pods.running} running, ${pods.bound} bound`
    return [
      stale === '' ? paint('bold', first) : paint('bold', first) + gap + paint('bad', stale),
      ...facts.resources.map((resource) => this.#resourceLine(width, resource, header)),
      clipped(podLine, width),
      clipped(shownText(slider ?? tenonText(header, facts.nowMs)), width),
    ]
  }

  #resourceLine(width: number, resource: string, { resources }: Header): string {
    const part = partOf(resources, resource)
    const { used, allocatable } = ownValue(resources, resource) ?? {}
    const amounts = `${amountText(resource, used)}/${amountText(resource, allocatable)}`
    const percent = part === undefined ? '?' : `${(part * 100).toFixed(1)}%`
    const name = padded(clipped(shownText(resource), width < roomyWidth ? 8 : 20), 8)
    const bar = this.#paint(
      lookOf(part),
      `${padded(percent, 6, 'right')} ${barText(part, Math.min(30, width - besideBar))}`,
    )
    return `${name} ${padded(clipped(amounts, width < roomyWidth ? 18 : width), 18, 'right')} ${bar}`
  }

  #tabLine(width: number, { state, counts, source }: Scene): string {
    const { place } = state
    // Without room only the tab that is shown has its count.
    const texts = tabs.map((tab) => {
      const count = width < roomyWidth && tab !== place.tab ? undefined : counts[tab]
      return { tab, text: count === undefined ? tab : `${tab} ${count}` }
    })
    const [gap, current] = width < roomyWidth ? ['', ' '] : [' ', '']
    const names = texts.map(({ tab, text }) =>
      tab === place.tab ? this.#paint('bold', `[${text}]`) + current : `${gap}${text} `,
    )
    const plain = texts
      .map(({ tab, text }) => (tab === place.tab ? `[${text}]${current}` : `${gap}${text} `))
      .join('')
    if (widthOf(plain) > width) return clipped(plain, width)
    const where = [
      place.tab === 'onNode' ? `pods on ${place.node ?? ''}` : '',
      place.pool === undefined ? '' : `of ${place.pool}`,
      place.filter === undefined ? '' : `/${place.filter}`,
      state.onlyFaults ? 'faults' : '',
      source,
    ]
    const rest = shownText(where.filter((each) => each !== '').join(' · '))
    return `${names.join('')}  ${clipped(rest, Math.max(0, width - widthOf(plain) - 2))}`
  }

  #table(size: Size, scene: Scene): readonly string[] {
    const { state, rows, offset, facts, hint } = scene
    const page = this.pageOf(size, scene)
    const visible = rows.slice(offset, offset + page)
    const columns = this.#placedFor(scene, visible, size.columns - 2)
    const further = state.place.tab === 'nodes' ? facts.resources.slice(1) : []
    const lines = visible.flatMap((row) => {
      const isSelected = row.id === state.place.selected
      const line = rowLine(row, columns, isSelected ? (_, text) => text : this.#paint)
      const more = further.map((resource) => this.#furtherLine(row, resource, columns))
      return [isSelected ? this.#paint('selected', `> ${line}`) : `  ${line}`, ...more]
    })
    const hintLines = hint === undefined ? [] : [clipped(`  ${shownText(hint)}`, size.columns)]
    // The columns depend on the first row.
    if (visible.length === 0 && hint !== undefined) return hintLines
    return [`  ${this.#paint('dim', titleLine(columns))}`, ...lines, ...hintLines]
  }

  #furtherLine(row: AnyRow, resource: string, columns: readonly Placed<AnyRow>[]): string {
    if (!('resources' in row)) return ''
    const cell = resourceCell(row, resource)
    const at = columns.findIndex(({ column }) => column.title === 'CPU')
    const before = columns.slice(0, Math.max(0, at)).reduce((sum, { width }) => sum + width + 2, 0)
    const label = clipped(shownText(resourceLine(row, resource)), Math.max(0, before - 2))
    return `  ${padded(label, before, 'left')}${this.#paint(cell.look, cell.text)}`
  }

  #placedFor(scene: Scene, visible: readonly AnyRow[], width: number): readonly Placed<AnyRow>[] {
    const { state, facts } = scene
    const key = `${state.place.tab} ${width} ${state.isWide}`
    const least = this.#widths.get(key) ?? new Map<string, number>()
    this.#widths.set(key, least)
    return placed(columnsOf(state, facts), visible, { width, isWide: state.isWide, least })
  }

  #detail({ columns }: Size, { state: { detail } }: Scene, room: number): readonly string[] {
    if (detail === undefined) return []
    const wrapped = this.detailLines({ columns }, detail)
    const { offset, title } = detail
    const last = Math.min(wrapped.length, offset + room - 1)
    const more = wrapped.length < room ? '' : `  lines ${offset + 1} to ${last} of ${wrapped.length}, j and k`
    const head = clipped(shownText(title), columns - widthOf(more))
    return [this.#paint('bold', head) + more, ...wrapped.slice(offset, last)]
  }

  /** Why the selected node is kept, in full where it fits: its column may be cut off. */
  #reasonLine(width: number, { rows, state }: Scene): readonly string[] {
    if (state.detail !== undefined || !hasReasons(state)) return []
    const row = rows.find(({ id }) => id === state.place.selected)
    const message = row !== undefined && 'why' in row ? row.why?.message : undefined
    return [message === undefined ? '' : clipped(`kept: ${shownText(message)}`, width)]
  }

  #foot(width: number, scene: Scene): readonly string[] {
    const { state } = scene
    const { typing, asked, note } = state
    // A command is never truncated: the user must see all of it before confirming.
    if (asked !== undefined)
      return wrappedLine(`run: ${shownText(asked.command)} ? y/N`, width).map((line) =>
        this.#paint('ok', line.trimEnd()),
      )
    const reason = this.#reasonLine(width, scene)
    if (typing !== undefined) return [...reason, clipped(`${typing.mark}${shownText(typing.text)}_`, width)]
    if (note !== undefined) return [...reason, this.#paint('bold', clipped(shownText(note), width))]
    return [
      ...reason,
      this.#paint(
        'dim',
        width < roomyWidth
          ? ': jump  / filter  Enter  Esc  d explain  y YAML  ? help'
          : clipped(': command  / filter  Enter down  Esc back  d explain  y YAML  ? help  q quit', width),
      ),
    ]
  }
}

/** Whether rows of the place may say why they are kept. */
function hasReasons({ place: { tab } }: ViewerState): boolean {
  return tab === 'nodes' || tab === 'claims'
}

type AnyColumn = Column<AnyRow>

function columnsOf(state: ViewerState, facts: CellFacts): readonly AnyColumn[] {
  // Each place has rows of one kind.
  switch (state.place.tab) {
    case 'nodes':
      return nodeColumns(facts) as readonly Column<never>[] as readonly AnyColumn[]
    case 'claims':
      return claimColumns(facts) as readonly Column<never>[] as readonly AnyColumn[]
    case 'pools':
      return poolColumns(facts) as readonly Column<never>[] as readonly AnyColumn[]
    case 'groups':
      return groupColumns() as readonly Column<never>[] as readonly AnyColumn[]
    case 'pods':
      return pendingPodColumns(facts) as readonly Column<never>[] as readonly AnyColumn[]
    case 'onNode':
      return podColumns() as readonly Column<never>[] as readonly AnyColumn[]
    case 'decisions':
      return decisionColumns(facts) as readonly Column<never>[] as readonly AnyColumn[]
    case 'cost':
      return costColumns(state.costBy, facts) as readonly Column<never>[] as readonly AnyColumn[]
  }
}

function tenonText({ tenon, currency = '' }: Header, nowMs: number): string {
  if (tenon === undefined) return 'Tenon: not reached, so that decisions and reasons are not known'
  const { decisionsPerMinute, next, paused, savedToday } = tenon
  const wait = next?.at === undefined ? undefined : Date.parse(next.at) - nowMs
  const at = wait === undefined ? '' : wait <= 0 ? ' now' : ` in ${durationText(wait)}`
  // Last, and only if not empty: a narrow screen cuts the end.
  const saved =
    savedToday === undefined || savedToday < 0.005
      ? ''
      : ` · saved today ${savedToday.toFixed(2)} ${currency}`.trimEnd()
  return shownText(
    `${decisionsPerMinute} decisions/min · ${paused === undefined ? 'not paused' : `PAUSED: ${paused}`} · next: ${next === undefined ? 'nothing' : next.text + at}${saved}`,
  )
}

function wrappedLine(line: string, width: number): readonly string[] {
  const parts: string[] = []
  let part = ''
  for (const word of line.split(/(?<= )/)) {
    if (part !== '' && widthOf(part + word.trimEnd()) > width) {
      parts.push(part)
      part = ''
    }
    part += word
    while (widthOf(part) > width && part.trimEnd() !== '') {
      const cut = clipped(part, width + 1).slice(0, -1)
      parts.push(cut)
      part = part.slice(Math.max(1, cut.length))
    }
  }
  return [...parts, part]
}

function tooSmall({ columns, rows }: Size): readonly string[] {
  const text = `${columns}x${rows} is too small: ${leastSize.columns}x${leastSize.rows} is needed`
  return [clipped(text, Math.max(1, columns)), ...Array<string>(Math.max(0, rows - 1)).fill('')]
}
