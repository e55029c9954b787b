/** When pods may be disrupted: annotation `tenon.sh/disruption-windows` of a pod, or of its namespace (wanted.md 5). */
import {
  isRecord,
  type KubeObject,
  type Namespace,
  ownValue,
  type Pod,
  readWindows,
  type TimeWindow,
  windowsFix,
  type WindowsState,
  windowsState,
} from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { Listeners } from '@tenon/runtime'
import type { PoolProblem } from '../nodepools/pool-problems.ts'
import { isDaemonPod, isMirrorPod, windowsAnnotation } from './pods.ts'

/** The windows of a pod now. */
export interface PodWindows extends WindowsState {
  readonly windows: readonly TimeWindow[]
  /** Whose annotation it is. */
  readonly of: 'pod' | 'namespace'
}

interface Known {
  /** Undefined if the text cannot be read. */
  readonly windows: readonly TimeWindow[] | undefined
  /** Number of pods and namespaces with this text. */
  users: number
  /** The last answer, which holds until it changes. */
  last?: { readonly sinceMs: number; readonly state: WindowsState }
}

export type Sources = Readonly<{
  pods: Pick<Cache<Pod>, 'onChange'>
  namespaces: Pick<Cache<Namespace>, 'onChange'>
}>

/** Workloads share their texts, so each is read once. */
export class DisruptionWindows {
  readonly #known = new Map<string, Known>()
  readonly #ofNamespaces = new Map<string, string>()
  #isOn = false
  /** Names of namespaces whose annotation has changed. */
  readonly changes: Listeners<string> = new Listeners()

  /** Without it, no pod has windows. */
  follow({ pods, namespaces }: Sources): void {
    this.#isOn = true
    pods.onChange((change) => {
      const before = change.kind === 'updated' ? textOf(change.old) : undefined
      const after = textOf(change.object)
      if (change.kind === 'updated') this.#replace(before, after)
      else if (change.kind === 'deleted') this.#replace(after, undefined)
      else this.#replace(undefined, after)
    })
    namespaces.onChange(({ kind, object }) => {
      const { deletionTimestamp, name } = object.metadata
      // A Namespace is never gone without being deleted first: this view only lacks it.
      if (kind === 'deleted' && deletionTimestamp === undefined) return
      const before = this.#ofNamespaces.get(name)
      const after = kind === 'deleted' ? undefined : textOf(object)
      if (before === after) return
      this.#replace(before, after)
      if (after === undefined) this.#ofNamespaces.delete(name)
      else this.#ofNamespaces.set(name, after)
      this.changes.notify(name)
    })
  }

  /**
   * Undefined if the pod has no windows, or none that can be read. Those of a namespace are not for pods of DaemonSets and
   * static pods, which end with their node.
   */
  of(pod: Pod, nowMs: number): PodWindows | undefined {
    if (!this.#isOn) return undefined
    // The caches may not show the pod's annotation yet.
    const own = this.#read(textOf(pod), nowMs)
    if (own !== undefined) return { ...own, of: 'pod' }
    if (this.#ofNamespaces.size === 0 || isDaemonPod(pod) || isMirrorPod(pod)) return undefined
    const shared = this.#read(this.#ofNamespaces.get(pod.metadata.namespace ?? ''), nowMs)
    return shared && { ...shared, of: 'namespace' }
  }

  /** When a window of a pod or namespace next begins or ends, in Unix milliseconds. */
  nextChangeMs(nowMs: number): number | undefined {
    let next: number | undefined
    for (const text of this.#known.keys()) {
      const { changeMs } = this.#read(text, nowMs) ?? {}
      if (changeMs !== undefined) next = Math.min(next ?? changeMs, changeMs)
    }
    return next
  }

  #read(text: string | undefined, nowMs: number): Omit<PodWindows, 'of'> | undefined {
    if (text === undefined) return undefined
    const known = this.#known.get(text) ?? { windows: windowsIn(text), users: 0 }
    const { windows, last } = known
    if (windows === undefined) return undefined
    if (last !== undefined && last.sinceMs <= nowMs && nowMs < (last.state.changeMs ?? Infinity))
      return { windows, ...last.state }
    const state = windowsState(windows, nowMs)
    known.last = { sinceMs: nowMs, state }
    return { windows, ...state }
  }

  #replace(before: string | undefined, after: string | undefined): void {
    if (before === after) return
    if (after !== undefined) {
      const known = this.#known.get(after)
      if (known === undefined) this.#known.set(after, { windows: windowsIn(after), users: 1 })
      else known.users++
    }
    const former = before === undefined ? undefined : this.#known.get(before)
    if (before !== undefined && former !== undefined && --former.users <= 0) this.#known.delete(before)
  }
}

function windowsIn(text: string): readonly TimeWindow[] | undefined {
  const reading = readWindows(text)
  return 'windows' in reading ? reading.windows : undefined
}

function textOf({ metadata }: Pick<KubeObject, 'metadata'>): string | undefined {
  const text: unknown = ownValue(metadata.annotations, windowsAnnotation)
  return typeof text === 'string' ? text : undefined
}

/**
 * What is wrong with an annotation that has windows; undefined if it can be read, or is not there.
 * @param path of the metadata, such as `metadata`.
 */
export function windowsProblem(
  { annotations }: { readonly annotations?: unknown },
  key: string,
  path = 'metadata',
): PoolProblem | undefined {
  const text = isRecord(annotations) ? ownValue(annotations, key) : undefined
  if (text === undefined) return undefined
  const reading = readWindows(typeof text === 'string' ? text : '')
  if (!('problem' in reading)) return undefined
  return {
    field: `${path}.annotations["${key}"]`,
    message: `it cannot be read and is ignored: ${reading.problem}`,
    fix: windowsFix,
  }
}
