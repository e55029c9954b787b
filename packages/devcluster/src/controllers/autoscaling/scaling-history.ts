import type { ScalingRules } from '../objects/workloads.ts'

interface Entry {
  readonly atMs: number
  readonly replicas: number
}

interface Bound {
  readonly replicas: number
  readonly reason: string
  readonly message: string
}

/** Scaling rules with all defaults of Kubernetes. */
export interface CompleteRules {
  readonly stabilizationMs: number
  readonly selectPolicy: 'Max' | 'Min' | 'Disabled'
  readonly policies: NonNullable<ScalingRules['policies']>
  readonly tolerance: number
}

/** Recent recommendations and actions of an autoscaler. Like Kubernetes' own, it is lost on restart. */
export class ScalingHistory {
  #recommendations: Entry[] = []
  #ups: Entry[] = []
  #downs: Entry[] = []

  /** Starts with the current replicas, so that a new autoscaler does not scale down at once. */
  begin(replicas: number, atMs: number): void {
    if (this.#recommendations.length === 0) this.#recommendations.push({ atMs, replicas })
  }

  /** Limits a recommendation by those of the stabilization windows. */
  stabilize(current: number, desired: number, up: CompleteRules, down: CompleteRules, nowMs: number): number {
    let [lowest, highest] = [desired, desired]
    for (const { atMs, replicas } of this.#recommendations) {
      if (atMs > nowMs - up.stabilizationMs) lowest = Math.min(lowest, replicas)
      if (atMs > nowMs - down.stabilizationMs) highest = Math.max(highest, replicas)
    }
    const longestMs = Math.max(up.stabilizationMs, down.stabilizationMs)
    this.#recommendations = this.#recommendations.filter(({ atMs }) => atMs > nowMs - longestMs)
    this.#recommendations.push({ atMs: nowMs, replicas: desired })
    return Math.max(Math.min(current, highest), lowest) === current
      ? current
      : current < lowest
        ? lowest
        : highest
  }

  scaled(from: number, to: number, atMs: number): void {
    const longestMs = 1_800_000
    const recent = (list: readonly Entry[]) => list.filter((entry) => entry.atMs > atMs - longestMs)
    this.#ups = recent(this.#ups)
    this.#downs = recent(this.#downs)
    if (to > from) this.#ups.push({ atMs, replicas: to - from })
    else if (to < from) this.#downs.push({ atMs, replicas: from - to })
  }

  /** The highest number of replicas that the policies allow. */
  upperLimit(current: number, rules: CompleteRules, nowMs: number): number {
    if (rules.selectPolicy === 'Disabled') return current
    const proposals = rules.policies.map(({ type, value, periodSeconds }) => {
      const start = this.#before(current, periodSeconds, nowMs)
      return type === 'Pods' ? start + value : Math.ceil(start * (1 + value / 100))
    })
    const limit = rules.selectPolicy === 'Min' ? Math.min(...proposals) : Math.max(...proposals)
    return Math.max(current, limit)
  }

  /** The lowest number of replicas that the policies allow. */
  lowerLimit(current: number, rules: CompleteRules, nowMs: number): number {
    if (rules.selectPolicy === 'Disabled') return current
    const proposals = rules.policies.map(({ type, value, periodSeconds }) => {
      const start = this.#before(current, periodSeconds, nowMs)
      return type === 'Pods' ? start - value : Math.trunc(start * (1 - value / 100))
    })
    const limit = rules.selectPolicy === 'Min' ? Math.max(...proposals) : Math.min(...proposals)
    return Math.min(current, limit)
  }

  /** The replicas at the beginning of a period. */
  #before(current: number, periodSeconds: number, nowMs: number): number {
    const sum = (list: readonly Entry[]) =>
      list
        .filter(({ atMs }) => atMs > nowMs - periodSeconds * 1000)
        .reduce((total, { replicas }) => total + replicas, 0)
    return current - sum(this.#ups) + sum(this.#downs)
  }
}

/** Limits a number of replicas to the bounds. */
export function bounded(desired: number, least: Bound, most: Bound): Bound {
  if (desired < least.replicas) return least
  if (desired > most.replicas) return most
  const message = 'the desired count is within the acceptable range'
  return { replicas: desired, reason: 'DesiredWithinRange', message }
}
