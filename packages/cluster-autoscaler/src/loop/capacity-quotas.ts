/** CapacityQuotas of one iteration: their use, their status, and what is reported of them (quotas.md 1). */
import {
  type CapacityQuota,
  conditionOf,
  formatResources,
  isQuotaEnforced,
  larger,
  type Node,
  ownValue,
  parseResources,
  quotaFailedReason,
  quotaProblem,
  quotaStatus,
  quotaValidType,
  readQuota,
  sameCondition,
} from '@tenon/api'
import { messageOf } from '@tenon/runtime'
import type { ClusterCache, ClusterWriter, LoopView, NodeTemplate, QuotaUse, Reporting } from '../model.ts'
import type { ClusterStateRegistry } from '../registry/cluster-state.ts'
import type { RunningReport } from '../status/status-report.ts'
import { leftText, quotaUses, usedBy } from '../scale-up/capacity-quotas.ts'

interface CapacityQuotasDependencies {
  readonly cache: Pick<ClusterCache, 'quotas'>
  readonly registry: Pick<ClusterStateRegistry, 'readinessOf'>
  readonly writer: Pick<ClusterWriter, 'writeQuotaStatus'>
  readonly reporting: Pick<Reporting, 'events' | 'logger'>
}

export class CapacityQuotas {
  readonly #deps: CapacityQuotasDependencies
  /** So that an error of writes that lasts is logged once. */
  #lastError: string | undefined

  constructor(deps: CapacityQuotasDependencies) {
    this.#deps = deps
  }

  /** Enforced quotas, with the use by existing nodes and by those that may still come. */
  uses(view: Omit<LoopView, 'quotas'>): readonly QuotaUse[] {
    const { quotas = [] } = this.#deps.cache
    return quotas.length === 0 ? [] : quotaUses(quotas, this.#nodes(view))
  }

  /** Writes statuses that have changed. Only rejects with the signal's reason. */
  async write({ nodes, nowMs }: Pick<LoopView, 'nodes' | 'nowMs'>, signal: AbortSignal): Promise<void> {
    const { cache, reporting, writer } = this.#deps
    let lastError: string | undefined
    for (const quota of cache.quotas ?? []) {
      const reading = readQuota(quota)
      const problem = quotaProblem(reading)
      if (problem !== undefined) reporting.events.object(quota, 'Warning', quotaFailedReason, problem)
      const used = reading.kind === 'read' ? usedBy(nodes, reading) : undefined
      const status = quotaStatus(quota, used, nowMs)
      if (isSameStatus(quota.status, status)) continue
      try {
        await writer.writeQuotaStatus({ ...quota, status }, signal)
      } catch (error) {
        signal.throwIfAborted()
        lastError = messageOf(error)
        if (lastError !== this.#lastError)
          reporting.logger.warn('the status of a CapacityQuota is not written', {
            quota: quota.metadata.name,
            error,
          })
      }
    }
    this.#lastError = lastError
  }

  /** What is left of each quota, or why it is not enforced. */
  reports({ quotas: uses }: Pick<LoopView, 'quotas'>): RunningReport['quotas'] {
    const byName = new Map(uses.map((use) => [use.name, use]))
    return (this.#deps.cache.quotas ?? []).map((quota) => {
      const { name } = quota.metadata
      const use = byName.get(name)
      if (use === undefined) return { name, message: `not enforced: ${whyNotEnforced(quota)}` }
      const left = Object.keys(use.limits).map((resource) => `${resource}: ${leftText(use, resource)}`)
      return { name, message: left.join('; ') }
    })
  }

  /** Registered nodes, and a template for each member that a group's target size still lacks. */
  #nodes({ nodes, index, templates }: Omit<LoopView, 'quotas'>): readonly Node[] {
    const { registry } = this.#deps
    const starting = new Map<string, NodeTemplate>()
    const coming = [...index.groups.values()].flatMap(({ id, targetSize }): readonly Node[] => {
      const template = templates.get(id)
      if (template === undefined) return []
      const { registered = [], deleted = [], notStarted = [] } = registry.readinessOf(id) ?? {}
      for (const name of notStarted) starting.set(name, template)
      const missing = Math.max(0, targetSize - (registered.length - deleted.length))
      return Array.from({ length: missing }, () => template.node)
    })
    const existing = nodes.map((node) => {
      const template = starting.get(node.metadata.name)
      return template === undefined ? node : withCapacityOf(template, node)
    })
    return [...existing, ...coming]
  }
}

/** A kubelet reports extended resources late. */
function withCapacityOf({ node: { status: template } }: NodeTemplate, node: Node): Node {
  const amounts = larger(parseResources(node.status?.capacity), parseResources(template?.capacity))
  return { ...node, status: { ...node.status, capacity: formatResources(amounts) } }
}

function whyNotEnforced(quota: CapacityQuota): string {
  const problem = quotaProblem(readQuota(quota))
  if (problem !== undefined) return problem
  if (isQuotaEnforced(quota)) return 'it is new'
  return `it is called invalid: ${conditionOf(quota, quotaValidType)?.message ?? ''}`
}

type Status = NonNullable<CapacityQuota['status']>

function isSameStatus(old: Status = {}, status: Status): boolean {
  const { conditions = [], used: { resources = {} } = {} } = status
  const before = old.used?.resources ?? {}
  return (
    old.observedGeneration === status.observedGeneration &&
    Object.keys(before).length === Object.keys(resources).length &&
    Object.entries(resources).every(([name, amount]) => ownValue(before, name) === amount) &&
    conditions.every((each) => {
      const known = old.conditions?.find(({ type }) => type === each.type)
      return known !== undefined && sameCondition(known, each)
    })
  )
}
