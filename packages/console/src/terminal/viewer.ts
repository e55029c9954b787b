/** Runs the viewer on a terminal: keys in, frames out (console.md 2). */
import { type Clock, messageOf } from '@tenon/runtime'
import { pauseAction } from '../actions/pausing.ts'
import type { Action, Target } from '../actions/request.ts'
import type { ConsoleModel } from '../model/model.ts'
import type { Header } from '../model/view.ts'
import type { Timeline } from '../sources/timeline.ts'
import { filterOf, type LabelMatcher } from './filter.ts'
import { FrameMaker, type Scene, type Size } from './frame.ts'
import { groupText } from './plain.ts'
import { keysIn } from './keys.ts'
import { type AnyRow, Lists } from './lists.ts'
import type { Paint } from './paint.ts'
import { Screen, type Terminal } from './screen.ts'
import { Slider } from './slider.ts'
import { type Effect, type Place, type Sorting, startState, stepOf, type ViewerState } from './state.ts'

/** What the viewer needs from its source. */
export interface ViewerPorts {
  /** The lines of `tenon explain`. */
  explain(target: Target): Promise<readonly string[]>
  yaml(target: Target): Promise<readonly string[]>
  /** The command that does the same as an action. */
  commandOf(action: Action): string
  /**
   * Carries out a confirmed action and returns a message.
   * @throws Error if it was not done.
   */
  act(action: Action): Promise<string>
}

export interface ViewerOptions {
  readonly paint: Paint
  readonly matcher: LabelMatcher
  readonly resources: readonly string[]
  readonly extraLabels: readonly string[]
  readonly hasPricing: boolean
  readonly sorting: Sorting
  /** Why nothing can be changed; undefined if actions are allowed. */
  readonly readOnly: string | undefined
  /** The source of the facts, in a word or two. */
  readonly source: string
  /** For a snapshot: when it was taken, used instead of the clock. */
  readonly fixedNowMs?: number
  /** For a recording: its time, used instead of the clock. */
  readonly timeline?: Timeline
}

/** Changes are drawn after this delay (console.md, trap 1); keys immediately. */
const gatherMs = 100
/** Ages have to be updated. */
const tickMs = 1000
/** Fits on one line of any screen. */
const noteLength = 80

export class Viewer {
  readonly #model: ConsoleModel
  readonly #ports: ViewerPorts
  readonly #options: ViewerOptions
  readonly #clock: Clock
  readonly #lists: Lists
  readonly #frames: FrameMaker
  readonly #slider: Slider | undefined
  #state: ViewerState
  #header: Header | undefined
  #absent: ReadonlyMap<string, string> = new Map()
  #offset = 0
  /** Whether something has changed since the last frame. */
  #isDue = true

  constructor(model: ConsoleModel, ports: ViewerPorts, options: ViewerOptions, clock: Clock) {
    this.#model = model
    this.#ports = ports
    this.#options = options
    this.#clock = clock
    this.#lists = new Lists(model, options.matcher, options.resources[0] ?? 'cpu')
    this.#frames = new FrameMaker(options.paint)
    this.#slider = options.timeline && new Slider(options.timeline)
    this.#state = startState(options.sorting)
  }

  /** Call it after each event of a source. */
  modelChanged(): void {
    this.#isDue = true
  }

  /** Runs until the user quits or `signal` aborts. Always restores the terminal. */
  async run(terminal: Terminal, signal: AbortSignal): Promise<void> {
    const ended = new AbortController()
    const end = AbortSignal.any([signal, ended.signal])
    const screen = new Screen(terminal)
    const draw = () => {
      screen.draw(this.frame(terminal.size()))
    }
    const close = screen.open({
      keys: (text) => {
        for (const key of keysIn(text)) {
          const effect = this.press(key, terminal.size())
          if (effect !== undefined) this.#start(effect, screen, { quit: () => ended.abort(), draw })
        }
        if (!end.aborted) draw()
      },
      resized: draw,
      resumed: draw,
    })
    try {
      let drawnMs = Number.NEGATIVE_INFINITY
      while (!end.aborted) {
        if (this.#slider?.tick() === true) this.#isDue = true
        const isBehind = this.#model.isBehind || this.#isCounting
        if (this.#isDue || isBehind || this.#clock.monotonic() - drawnMs >= tickMs) {
          this.#isDue = false
          draw()
          drawnMs = this.#clock.monotonic()
        }
        await this.#clock.sleep(gatherMs, end).catch(() => undefined)
      }
    } finally {
      close()
    }
  }

  /** Whether visible costs are being computed. */
  get #isCounting(): boolean {
    return this.#state.place.tab === 'cost' && this.#lists.isCounting
  }

  /** The current screen. */
  frame(size: Size): readonly string[] {
    const scene = this.#scene(size)
    return this.#frames.frame(size, scene)
  }

  /** Changes the state and returns the effect of the key. */
  press(key: string, size: Size): Effect | undefined {
    const { asked, detail, typing } = this.#state
    const detailLines = detail === undefined ? 0 : this.#frames.detailLines(size, detail).length
    const isFree = asked === undefined && detail === undefined && typing === undefined
    if (isFree && this.#slider?.press(key) === true) return undefined
    const { rows, header, facts } = this.#scene(size)
    const ids = rows.map(({ id }) => id)
    const selected = rows[Math.max(0, ids.indexOf(this.#state.place.selected ?? ''))]
    const target = targetOf(this.#state.place, selected)
    const node = target?.kind === 'node' ? this.#lists.nodeNamed(target.name) : undefined
    const { state, effect } = stepOf(this.#state, key, {
      ids,
      page: this.#frames.pageOf(size, { state: this.#state, header, facts }),
      detailLines,
      readOnly: this.#options.readOnly,
      commandOf: (action) => this.#ports.commandOf(action),
      about: aboutOf(selected),
      target,
      below: belowOf(this.#state.place, selected),
      isCordoned: node?.cordoned === true,
      pausing: pauseAction(this.#lists.pools(), target?.kind === 'nodepool' ? target.name : undefined),
      filterProblem: (text) => {
        try {
          filterOf(text, this.#options.matcher)
          return undefined
        } catch (error) {
          return error instanceof Error ? error.message.replace(/^error: /, '') : String(error)
        }
      },
    })
    this.#state = state
    return effect
  }

  #start(
    effect: Effect,
    screen: Screen,
    { quit, draw }: { readonly quit: () => void; readonly draw: () => void },
  ): void {
    switch (effect.kind) {
      case 'quit':
        quit()
        return
      case 'copy':
        screen.copy(effect.text)
        return
      case 'act':
        this.#state = { ...this.#state, note: 'working…' }
        void this.#act(effect.action, draw)
        return
      case 'explain':
      case 'yaml':
        void this.#ask(effect, draw)
    }
  }

  async #act(action: Action, draw: () => void): Promise<void> {
    const command = this.#ports.commandOf(action)
    const { isDone, text } = await this.#ports.act(action).then(
      (done) => ({ isDone: true, text: done }),
      (error: unknown) => ({ isDone: false, text: messageOf(error) }),
    )
    const { note: _, ...state } = this.#state
    // A line is too short for the reason of a failure.
    this.#state =
      isDone && text.length <= noteLength && !text.includes('\n')
        ? { ...state, note: text }
        : {
            ...state,
            detail: {
              title: `${isDone ? 'done' : 'failed'}: ${command}`,
              lines: text.split('\n'),
              offset: 0,
            },
          }
    draw()
  }

  async #ask(
    { kind, target }: Extract<Effect, { kind: 'explain' | 'yaml' }>,
    draw: () => void,
  ): Promise<void> {
    const lines = await this.#ports[kind](target).catch((error: unknown) => [messageOf(error)])
    const { detail } = this.#state
    if (detail === undefined || detail.lines !== undefined) return
    this.#state = { ...this.#state, detail: { ...detail, lines } }
    draw()
  }

  #scene(size: Size): Scene {
    const { fixedNowMs, timeline } = this.#options
    const nowMs = timeline?.atMs ?? fixedNowMs ?? this.#clock.now()
    this.#take(nowMs)
    const header = this.#header ?? this.#model.view(nowMs).header
    const { resources, extraLabels, hasPricing, source } = this.#options
    const facts = {
      nowMs,
      resources,
      extraLabels,
      hasPricing,
      ...(header.currency !== undefined && { currency: header.currency }),
    }
    const rows = this.#lists.rows(this.#state, nowMs)
    const page = this.#frames.pageOf(size, { state: this.#state, header, facts })
    this.#follow(rows, page)
    const count = (table: Parameters<Lists['count']>[0]) => this.#lists.count(table)
    return {
      state: this.#state,
      header,
      counts: {
        nodes: count('nodes'),
        claims: count('claims'),
        pools: count('pools'),
        pods: count('pendingPods'),
        decisions: count('decisions'),
        cost: undefined,
        groups: count('groups'),
      },
      rows,
      offset: this.#offset,
      hint: this.#hint(rows, nowMs),
      source,
      ...(this.#slider !== undefined && { slider: this.#slider.text() }),
      facts,
    }
  }

  #take(nowMs: number): void {
    const changes = this.#model.takeChanges(nowMs)
    this.#lists.take(changes)
    for (const change of changes) {
      if ('header' in change) this.#header = change.header
      if ('absent' in change) this.#absent = new Map(change.absent.map(({ what, why }) => [what, why]))
    }
  }

  /** Keeps the selection on an existing row, and scrolls to it. */
  #follow(rows: readonly AnyRow[], page: number): void {
    const { selected } = this.#state.place
    let at = rows.findIndex(({ id }) => id === selected)
    if (at < 0 && rows.length > 0) {
      at = Math.min(this.#offset, rows.length - 1)
      const id = rows[at]?.id
      this.#state = {
        ...this.#state,
        place: { ...this.#state.place, ...(id !== undefined && { selected: id }) },
      }
    }
    this.#offset = Math.min(this.#offset, Math.max(0, rows.length - page), Math.max(0, at))
    if (at >= this.#offset + page) this.#offset = at - page + 1
  }

  #hint(rows: readonly AnyRow[], nowMs: number): string | undefined {
    const { tab } = this.#state.place
    const whats = {
      nodes: ['nodes', 'nodeclaims'],
      claims: ['nodeclaims'],
      pools: ['nodepools'],
      pods: ['pods'],
      onNode: ['pods'],
      decisions: ['journal'],
      cost: ['prices'],
      groups: ['nodegroups'],
    }[tab]
    const whys = whats.flatMap((what) => {
      const why = this.#absent.get(what)
      return why === undefined ? [] : [`${what}: ${why}`]
    })
    if (tab === 'cost') {
      const report = this.#lists.cost(this.#state, nowMs)
      if (report === undefined) return 'being added up…'
      const { idlePerHour, totalPerHour, unpriced } = report
      const unknown = unpriced.length === 0 ? '' : `, ${unpriced.length} of unknown price in no sum`
      const idle = idlePerHour > 0 ? `, of it idle and in no row ${idlePerHour.toFixed(3)}/h` : ''
      whys.push(`total ${totalPerHour.toFixed(3)}/h${idle}${unknown}`)
    }
    if (whys.length > 0) return whys.join('; ')
    if (rows.length > 0) return undefined
    const { filter } = this.#state.place
    if (filter !== undefined || this.#state.onlyFaults) return 'none of these'
    if (tab === 'groups') return 'no Cluster Autoscaler reports node groups'
    return tab === 'pods' ? 'no pod waits for a node' : 'none'
  }
}

function targetOf({ tab }: Place, row: AnyRow | undefined): Target | undefined {
  if (row === undefined) return undefined
  switch (tab) {
    case 'nodes': {
      if ('node' in row && row.node !== undefined) return { kind: 'node', name: row.node }
      return 'name' in row && row.name !== undefined ? { kind: 'nodeclaim', name: row.name } : undefined
    }
    case 'claims':
      return 'name' in row && row.name !== undefined ? { kind: 'nodeclaim', name: row.name } : undefined
    case 'pools':
      return { kind: 'nodepool', name: row.id }
    case 'pods':
    case 'onNode': {
      const [namespace = '', name = ''] = row.id.split('/')
      return { kind: 'pod', namespace, name }
    }
    case 'decisions':
      return decidedTarget(row)
    case 'cost':
    case 'groups':
      return undefined
  }
}

/** The full text of a decision or node group, as most are longer than a line. */
function aboutOf(row: AnyRow | undefined): readonly string[] {
  if (row !== undefined && 'state' in row) return [groupText(row)]
  if (row === undefined || !('nodeClaims' in row)) return []
  const { at, kind, message, reason } = row
  return [`${at} ${kind} ${reason}: ${message}`]
}

function decidedTarget(row: AnyRow): Target | undefined {
  if (!('nodeClaims' in row)) return undefined
  const [node, claim] = [row.nodes[0], row.nodeClaims[0]]
  if (node !== undefined) return { kind: 'node', name: node }
  if (claim !== undefined) return { kind: 'nodeclaim', name: claim }
  return row.nodePool === undefined ? undefined : { kind: 'nodepool', name: row.nodePool }
}

function belowOf({ tab }: Place, row: AnyRow | undefined): Place | undefined {
  if (row === undefined) return undefined
  if (tab === 'pools') return { tab: 'claims', pool: row.id }
  if (tab === 'claims') return { tab: 'nodes', claim: row.id }
  if (tab === 'nodes' && 'node' in row && row.node !== undefined) return { tab: 'onNode', node: row.node }
  return undefined
}
