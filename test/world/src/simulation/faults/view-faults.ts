/** Wrong views of the cluster: delayed watches, wrong lists and watches, and the server of another cluster. */
import type { KubeObject } from '@tenon/api'
import { type Clock, integerBetween, type Random, type Transport } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { OperatorFleet } from '../process/operator-fleet.ts'
import type { OperatorProcess } from '../process/operator-process.ts'
import { AnotherCluster } from './another-cluster.ts'
import type { FaultDependencies } from './api-faults.ts'
import { WrongViews } from './wrong-views.ts'

const minute = 60_000
const longestDelayMs = 5 * minute
/** A second source has confirmed or refuted the view by then: lists are repeated within a minute. */
const restMs = 10 * minute
const foreignUid = '0e500000-0000-4000-8000-000000000000'

interface View {
  readonly views: WrongViews
  readonly other: AnotherCluster
  /** Kinds with a wrong view: two wrong sources at the same time would deceive anybody. */
  readonly restUntil: Map<string, number>
}

/** The views of the processes of one run. */
export class ViewFaults {
  readonly #of = new Map<OperatorProcess, View>()
  readonly #clock: Clock
  #wrongUntilMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether a controller may see the cluster later, or differently, than delays of responses explain. */
  mayBeWrong(): boolean {
    return this.#clock.monotonic() < this.#wrongUntilMs
  }

  /** Wraps the connection of a process to the API server. */
  path(process: OperatorProcess, inner: Transport): Transport {
    const view: View = {
      views: new WrongViews(),
      other: new AnotherCluster(foreignUid),
      restUntil: new Map(),
    }
    this.#of.set(process, view)
    return view.other.path(view.views.path(inner, this.#clock))
  }

  /** Decides once a minute whether a fault strikes the leader. Call the result to stop. */
  play(world: World, fleet: OperatorFleet, { weather, clock, log }: FaultDependencies): () => void {
    const { local } = world.cluster.server
    const identity = local.get(namespaceKind, undefined, 'kube-system')?.metadata.uid ?? ''
    let isStopped = false
    const chosen = ({ views, restUntil }: View, random: Random): readonly string[] => {
      const free = views.watched().filter((plural) => (restUntil.get(plural) ?? 0) <= clock.monotonic())
      const scope = random.uint32() % 4
      if (scope === 0) return free
      const some = free.filter(() => scope === 1 && random.uint32() % 4 === 0)
      const one = free[random.uint32() % Math.max(1, free.length)]
      return some.length > 0 || one === undefined ? some : [one]
    }
    const rest = ({ restUntil }: View, plurals: readonly string[], ms: number): void => {
      this.#wrongUntilMs = Math.max(this.#wrongUntilMs, clock.monotonic() + ms)
      for (const plural of plurals) restUntil.set(plural, clock.monotonic() + ms)
    }
    const objectsOf = (plural: string): readonly KubeObject[] =>
      local
        .definitions()
        .filter((each) => each.plural === plural)
        .flatMap((type) => local.list(type))
    const step = (): void => {
      if (isStopped) return
      const leader = fleet.leader()
      const view = leader === undefined ? undefined : this.#of.get(leader)
      if (view !== undefined && weather.strikes('lateWatch')) {
        const random = weather.source('lateWatch')
        const plurals = chosen(view, random)
        const [delayMs, lastsMs] = [
          integerBetween(random, 0, longestDelayMs),
          integerBetween(random, minute, 10 * minute),
        ]
        log.record('fault', `lateWatch ${plurals.join(' ')} ${delayMs} for ${lastsMs}`)
        for (const plural of plurals) view.views.late(plural, delayMs)
        rest(view, plurals, lastsMs + delayMs + restMs)
        clock.after(lastsMs, () => {
          for (const plural of plurals) view.views.late(plural, 0)
        })
      }
      if (view !== undefined && weather.strikes('wrongList')) {
        const random = weather.source('wrongList')
        const plurals = chosen(view, random)
        const lie = (['empty', 'half', 'old'] as const)[random.uint32() % 3] ?? 'empty'
        log.record('fault', `wrongList ${lie} ${plurals.join(' ')}`)
        rest(view, plurals, restMs)
        for (const plural of plurals) {
          view.views.lie(plural, lie, 1)
          view.views.expire(plural)
        }
      }
      if (view !== undefined && weather.strikes('falseDeletion')) {
        const random = weather.source('falseDeletion')
        const plurals = chosen(view, random)
        const share = random.uint32() % 3
        log.record('fault', `falseDeletion ${['one', 'half', 'all'][share]} ${plurals.join(' ')}`)
        rest(view, plurals, restMs)
        for (const plural of plurals) {
          const objects = objectsOf(plural)
          const from = random.uint32() % Math.max(1, objects.length)
          const choices = [objects.slice(from, from + 1), objects.filter((_, at) => at % 2 === 0), objects][
            share
          ]
          view.views.reportDeleted(plural, choices ?? [])
        }
      }
      if (view !== undefined && weather.strikes('otherCluster')) {
        const random = weather.source('otherCluster')
        // Short enough for a check in between to miss it, or long enough for a complete sweep.
        const ms =
          random.uint32() % 2 === 0
            ? integerBetween(random, 0, 5 * minute)
            : integerBetween(random, 5 * minute, 30 * minute)
        log.record('fault', `otherCluster ${ms}`)
        rest(view, [], ms + restMs)
        view.other.hide(identity)
        view.views.expire('*')
        clock.after(ms, () => {
          view.other.show()
        })
      }
      clock.after(minute, step)
    }
    clock.after(minute, step)
    return () => {
      isStopped = true
      for (const { views, other } of this.#of.values()) {
        other.show()
        views.stopAll()
      }
    }
  }
}

const namespaceKind = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
} as const
