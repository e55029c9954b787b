/** `tenon view`: shows a cluster in the terminal (console.md 2). */
import {
  colorDepthOf,
  ConsoleModel,
  keepYoungSpaceSmall,
  paintWith,
  snapshotEvents,
  sortedNodes,
  styleColorsOf,
  tableText,
  changeLines,
  Timeline,
  Viewer,
} from '@tenon/console'
import { rfc3339, SystemClock } from '@tenon/runtime'
import { followLive } from '../console/live.ts'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { type ClusterConnection, onCluster } from '../../kubectl/connection.ts'
import { snapshotFile } from '../../source/snapshot-file.ts'
import { version } from '../../version.ts'
import { traceRecords } from '../../trace-file.ts'
import { viewDocument } from './document.ts'
import { listOf, resourcesOf, sortingOf, type ViewFlags, withDefaultsFile } from './flags.ts'
import { matchLabels, pendingReasons, type ViewSource, viewerPorts } from './ports.ts'

/** Time limit of the first lists if one state is printed. */
const firstListsMs = 60_000
const pollMs = 100
const reasonsMs = 20_000
/** Pods that have been pending for less will probably get a node soon. */
const briefMs = 2000

/** @throws CliError naming the invalid flag or the missing source. */
export async function runView(io: Io, given: ViewFlags): Promise<void> {
  if (given.verbosity === true) {
    io.out(`v${version}\n`)
    return
  }
  if (given.attribution === true) {
    io.out('Tenon, Apache License 2.0. The packages in it are listed in docs/design/dependencies.md.\n')
    return
  }
  keepYoungSpaceSmall()
  const flags = await withDefaultsFile(io, given)
  const viewing = new Viewing(io, flags)
  if (flags.trace !== undefined) {
    await viewing.show({ kind: 'trace', timeline: await timelineOf(io, flags, viewing.model) })
    return
  }
  if (flags.snapshot !== undefined) {
    const snapshot = await snapshotFile(io, flags.snapshot)
    for (const event of snapshotEvents(snapshot)) viewing.model.apply(event)
    await viewing.show({ kind: 'snapshot', snapshot })
    return
  }
  const { verbosity, ...cluster } = flags
  const connecting = typeof verbosity === 'number' ? { ...cluster, verbosity } : cluster
  await onCluster(io, connecting, async (connection) => {
    await viewing.follow(connection)
  })
}

class Viewing {
  readonly model = new ConsoleModel()
  readonly #io: Io
  readonly #flags: ViewFlags
  readonly #clock = new SystemClock()
  readonly #resources: readonly string[]
  readonly #sorting: ReturnType<typeof sortingOf>
  readonly #paint: ReturnType<typeof paintWith>
  #viewer: Viewer | undefined

  constructor(io: Io, flags: ViewFlags) {
    this.#io = io
    this.#flags = flags
    this.#resources = resourcesOf(flags)
    this.#sorting = sortingOf(flags)
    this.#paint = paintOf(io, flags)
  }

  async follow(connection: ClusterConnection): Promise<void> {
    const ended = new AbortController()
    const signal = AbortSignal.any([this.#io.interrupted, ended.signal])
    const { verbosity: _, ...flags } = this.#flags
    const emit = (event: Parameters<ConsoleModel['apply']>[0]) => {
      this.model.apply(event)
      this.#viewer?.modelChanged()
    }
    await followLive(this.#io, flags, { connection, emit }, signal)
    try {
      await this.show({ kind: 'live', connection })
    } finally {
      ended.abort()
    }
  }

  async show(source: ViewSource): Promise<void> {
    if (this.#flags.once === true || this.#flags.output !== undefined) {
      await this.#filled(source)
      this.#print(standingMs(source) ?? this.#clock.now())
    } else if (this.#io.terminal === undefined) await this.#lines(source)
    else await this.#watch(source)
  }

  async #watch(source: ViewSource): Promise<void> {
    const { terminal, interrupted } = this.#io
    const { extraLabels, disablePricing, allowActions } = this.#flags
    if (terminal === undefined) return
    const ended = new AbortController()
    const signal = AbortSignal.any([interrupted, ended.signal])
    const viewer = new Viewer(
      this.model,
      viewerPorts({ ...this.#io, interrupted: signal }, this.#flags, source),
      {
        paint: this.#paint,
        matcher: matchLabels,
        resources: this.#resources,
        extraLabels: listOf(extraLabels),
        hasPricing: disablePricing !== true,
        sorting: this.#sorting,
        readOnly: allowActions === true ? undefined : readOnlyText(source),
        source: sourceText(source),
        ...(source.kind === 'snapshot' && { fixedNowMs: source.snapshot.takenAtMs }),
        ...(source.kind === 'trace' && { timeline: source.timeline }),
      },
      this.#clock,
    )
    this.#viewer = viewer
    if (source.kind !== 'trace') void this.#explainPending(signal)
    try {
      await viewer.run(terminal, signal)
    } finally {
      ended.abort()
    }
  }

  /** Explains pending pods periodically; less often if explanations take long. */
  async #explainPending(signal: AbortSignal): Promise<void> {
    const isFixed = this.#flags.snapshot !== undefined
    let asked = ''
    while (!signal.aborted) {
      const ids = this.model
        .waitingPods(isFixed ? Number.POSITIVE_INFINITY : this.#clock.now() - briefMs)
        .join(' ')
      const beganMs = this.#clock.monotonic()
      if (ids !== '' && (ids !== asked || !isFixed)) {
        asked = ids
        await this.#applyReasons(signal)
      }
      const tookMs = this.#clock.monotonic() - beganMs
      const waitMs = ids === '' ? briefMs : Math.max(reasonsMs, 10 * tookMs)
      await this.#clock.sleep(waitMs, signal).catch(() => undefined)
    }
  }

  async #applyReasons(signal: AbortSignal): Promise<void> {
    try {
      const reasons = await pendingReasons({ ...this.#io, interrupted: signal }, this.#flags)
      this.model.apply({ kind: 'reasons', reasons })
    } catch (error) {
      if (signal.aborted) return
      const why = error instanceof Error ? error.message : String(error)
      this.model.apply({ kind: 'absent', what: 'reasons', why })
    }
    this.#viewer?.modelChanged()
  }

  /** Waits until all resources were listed, or failed to be. */
  async #filled(source: ViewSource): Promise<void> {
    if (source.kind !== 'live') return
    const endMs = this.#clock.monotonic() + firstListsMs
    while (!this.#io.interrupted.aborted && !this.model.isFilled) {
      if (this.#clock.monotonic() > endMs)
        throw new CliError(
          'the cluster was not read within a minute: is the API server slow, or a right missing?',
        )
      await this.#clock.sleep(pollMs, this.#io.interrupted).catch(() => undefined)
    }
  }

  #print(nowMs: number): void {
    const view = this.model.view(nowMs)
    if (this.#flags.output === 'json') {
      this.#io.out(`${JSON.stringify(viewDocument(view, nowMs), undefined, 2)}\n`)
      return
    }
    const rows = sortedNodes(view.nodes, this.#sorting, this.#resources[0] ?? 'cpu')
    this.#io.out(tableText(view, rows, { nowMs, ...this.#facts(view.header.currency) }))
  }

  #facts(currency: string | undefined) {
    const { extraLabels, disablePricing } = this.#flags
    return {
      resources: this.#resources,
      extraLabels: listOf(extraLabels),
      hasPricing: disablePricing !== true,
      ...(currency !== undefined && { currency }),
    }
  }

  /** Prints a line per change until Ctrl-C; a source that does not change is printed once. */
  async #lines(source: ViewSource): Promise<void> {
    const { interrupted, out } = this.#io
    await this.#filled(source)
    for (;;) {
      const nowMs = standingMs(source) ?? this.#clock.now()
      for (const line of changeLines(this.model.takeChanges(nowMs), nowMs)) out(`${line}\n`)
      if (source.kind !== 'live' || interrupted.aborted) return
      await this.#clock.sleep(pollMs, interrupted).catch(() => undefined)
    }
  }
}

/** A snapshot or recording has its own time instead of the current one. */
function standingMs(source: ViewSource): number | undefined {
  if (source.kind === 'snapshot') return source.snapshot.takenAtMs
  return source.kind === 'trace' ? source.timeline.atMs : undefined
}

function sourceText(source: ViewSource): string {
  if (source.kind === 'trace') return `recording of ${source.timeline.source}`
  return source.kind === 'snapshot' ? `snapshot of ${rfc3339(source.snapshot.takenAtMs)}` : ''
}

function readOnlyText({ kind }: ViewSource): string {
  if (kind === 'trace') return 'a recording cannot be changed'
  return 'start with --allow-actions to change the cluster'
}

/** A recording at its beginning; at its end if one state is printed. */
async function timelineOf(io: Io, flags: ViewFlags, model: ConsoleModel): Promise<Timeline> {
  const { allowActions, output, once, trace = '' } = flags
  if (allowActions === true)
    throw new CliError('--allow-actions changes a cluster, and a recording is none: leave out one of them')
  const timeline = new Timeline(await traceRecords(io, trace), (event) => {
    model.apply(event)
  })
  if (once === true || output !== undefined) timeline.seek(timeline.endMs)
  return timeline
}

function paintOf({ env }: Io, { color, style }: ViewFlags): ReturnType<typeof paintWith> {
  try {
    const depth = colorDepthOf(env, color as Parameters<typeof colorDepthOf>[1])
    return style === undefined ? paintWith(depth) : paintWith(depth, styleColorsOf(style))
  } catch (error) {
    throw new CliError(`--style: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}
