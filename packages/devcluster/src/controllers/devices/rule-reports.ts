import {
  type Condition,
  type DeviceTaintRule,
  deviceTaintRuleKinds,
  type Pod,
  selectsDevice,
  type TaintedDevice,
} from '@tenon/api'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { ClusterStore } from '../loop/cluster-store.ts'
import type { Outcome } from '../loop/reconcile-loop.ts'

const type = 'EvictionInProgress'
/** Minimum time between two writes of the same state. */
const periodMs = 10_000

/** What this file works with. */
interface Dependencies {
  readonly store: ClusterStore
  readonly clock: Pick<Clock, 'now'>
  /** How many pods were evicted for a rule. */
  readonly evicted: (rule: DeviceTaintRule) => number
  /** Pods that a rule evicts, or would if its effect were NoExecute. */
  readonly pending: (rule: DeviceTaintRule) => readonly Pod[]
  /** All published devices, and those that are allocated. */
  readonly devices: () => {
    readonly published: readonly TaintedDevice[]
    readonly allocated: readonly TaintedDevice[]
  }
}

/** Writes to the status of each rule which pods it evicts. */
export class RuleReports {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  reconcile(name: string): Outcome {
    const { store, clock } = this.#deps
    const rule = store.get(deviceTaintRuleKinds.v1beta2, undefined, name)
    if (rule === undefined) return undefined
    const before = rule.status?.conditions?.find((condition) => condition.type === type)
    const sinceMs = clock.now() - (Date.parse(before?.lastTransitionTime ?? '') || 0)
    if (before?.observedGeneration === rule.metadata.generation && sinceMs < periodMs)
      return { afterMs: periodMs - sinceMs }
    const condition = this.#conditionOf(rule)
    const isSame =
      before !== undefined &&
      (['status', 'reason', 'message', 'observedGeneration'] as const).every(
        (field) => before[field] === condition[field],
      )
    if (isSame) return undefined
    const others = (rule.status?.conditions ?? []).filter((each) => each.type !== type)
    store.setStatus(deviceTaintRuleKinds.v1beta2, rule, {
      ...rule.status,
      conditions: [...others, condition],
    })
    return undefined
  }

  #conditionOf(rule: DeviceTaintRule): Condition {
    const { metadata, spec } = rule
    const { effect } = spec.taint
    const evicted = this.#deps.evicted(rule)
    const report = effect === 'NoExecute' ? this.#progress(rule, evicted) : this.#withoutEviction(rule)
    const gone = evicted === 0 ? [] : [`${counted(evicted, 'pod')} evicted since starting the controller.`]
    return {
      type,
      status: report.isPending === true ? 'True' : 'False',
      reason: report.reason,
      message: [...(report.message === '' ? [] : [report.message]), ...gone].join(' '),
      lastTransitionTime: rfc3339(this.#deps.clock.now()),
      ...(metadata.generation !== undefined && { observedGeneration: metadata.generation }),
    }
  }

  #progress(rule: DeviceTaintRule, evicted: number): Report {
    const pending = this.#deps.pending(rule)
    if (pending.length === 0) return { reason: evicted > 0 ? 'Completed' : 'NotStarted', message: '' }
    const need = pending.length === 1 ? 'needs' : 'need'
    const message = `${counted(pending.length, 'pod')} ${need} to be evicted in ${namespacesOf(pending)}.`
    return { isPending: true, reason: 'PodsPendingEviction', message }
  }

  /** Rules without effect report once what they would evict. */
  #withoutEviction(rule: DeviceTaintRule): Report {
    if (rule.spec.taint.effect !== 'None')
      return { reason: 'OtherEffect', message: 'Eviction only happens for the NoExecute effect.' }
    const pending = this.#deps.pending(rule)
    const { published, allocated } = this.#deps.devices()
    const selected = (devices: readonly TaintedDevice[]) =>
      devices.filter((device) => selectsDevice(rule, device)).length
    const message = [
      `${counted(selected(published), 'published device')} selected.`,
      `${counted(selected(allocated), 'allocated device')} selected.`,
      `${counted(pending.length, 'pod')} would be evicted in ${namespacesOf(pending)} if the effect was NoExecute.`,
      'This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.',
    ]
    return { reason: 'NoEffect', message: message.join(' ') }
  }
}

interface Report {
  readonly isPending?: true
  readonly reason: string
  readonly message: string
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}

function namespacesOf(pods: readonly Pod[]): string {
  const { size } = new Set(pods.map(({ metadata }) => metadata.namespace))
  return counted(size, size === 1 ? 'namespace' : 'different namespace')
}
