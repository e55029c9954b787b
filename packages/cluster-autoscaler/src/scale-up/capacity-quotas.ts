/** CapacityQuotas: what matching nodes use of them, and what they leave (quotas.md 1). */
import {
  type CapacityQuota,
  formatResource,
  isQuotaEnforced,
  type LabelSelector,
  matchesSelector,
  type Node,
  ownValue,
  parseResource,
  readQuota,
  type Resources,
  setOwn,
} from '@tenon/api'
import type { ExceededQuota, QuotaUse } from '../model.ts'

/** Enforced quotas with what these nodes use of them. */
export function quotaUses(quotas: readonly CapacityQuota[], nodes: readonly Node[]): readonly QuotaUse[] {
  return quotas.flatMap((quota) => {
    const reading = readQuota(quota)
    if (reading.kind !== 'read' || !isQuotaEnforced(quota)) return []
    const { selector, limits } = reading
    return [{ name: quota.metadata.name, selector, limits, used: usedBy(nodes, reading) }]
  })
}

/** What nodes that match have of the limited resources. */
export function usedBy(
  nodes: readonly Node[],
  { selector, limits }: Pick<QuotaUse, 'selector' | 'limits'>,
): Resources {
  const matching = nodes.filter((node) => matches(selector, node))
  return mapped(limits, (name) => matching.reduce((sum, node) => sum + amountOf(node, name), 0))
}

/** The uses with `count` more nodes like this one. */
export function withNodes(uses: readonly QuotaUse[], node: Node, count: number): readonly QuotaUse[] {
  return uses.map((use) =>
    matches(use.selector, node)
      ? { ...use, used: mapped(use.used, (name, amount) => amount + count * amountOf(node, name)) }
      : use,
  )
}

/** How many nodes like this one, up to `wanted`, all quotas allow. */
export function mostNodes(uses: readonly QuotaUse[], node: Node, wanted: number): number {
  let most = wanted
  for (const use of uses) {
    if (!matches(use.selector, node)) continue
    for (const name of Object.keys(use.limits)) {
      const each = amountOf(node, name)
      if (each > 0) most = Math.min(most, Math.floor(leftOf(use, name) / each))
    }
  }
  return Math.max(0, most)
}

/** Quotas that `count` more nodes like this one would exceed. */
export function exceededQuotas(
  uses: readonly QuotaUse[],
  node: Node,
  count: number,
): readonly ExceededQuota[] {
  return uses.flatMap((use) => {
    if (!matches(use.selector, node)) return []
    const resources = Object.keys(use.limits).flatMap((name) => {
      const more = count * amountOf(node, name)
      return more > 0 && more > leftOf(use, name) ? [{ name, left: leftText(use, name) }] : []
    })
    return resources.length > 0 ? [{ quota: use.name, resources }] : []
  })
}

/** `4 of 40 left`. */
export function leftText(use: QuotaUse, name: string): string {
  const left = formatResource(name, Math.max(0, leftOf(use, name)))
  return `${left} of ${formatResource(name, ownValue(use.limits, name) ?? 0)} left`
}

/** Negative if a quota was lowered below its use. */
function leftOf({ limits, used }: QuotaUse, name: string): number {
  return (ownValue(limits, name) ?? 0) - (ownValue(used, name) ?? 0)
}

function matches(selector: LabelSelector, { metadata }: Node): boolean {
  return matchesSelector(selector, metadata.labels ?? {})
}

function amountOf({ status }: Node, name: string): number {
  return name === 'nodes' ? 1 : parseResource(name, ownValue(status?.capacity, name) ?? 0)
}

function mapped(amounts: Resources, change: (name: string, amount: number) => number): Resources {
  const changed: Record<string, number> = {}
  for (const [name, amount] of Object.entries(amounts)) setOwn(changed, name, change(name, amount))
  return changed
}
