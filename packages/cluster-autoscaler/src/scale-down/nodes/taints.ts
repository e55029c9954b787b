/** Taints for deletion, as changes of a Node (cluster-autoscaler.md 6.1, 6.6). */
import { type Node, ownValue, type Taint } from '@tenon/api'
import { annotations, deletionCandidateTaint, toBeDeletedTaint } from '../../names.ts'

/** Value of a new taint: Unix seconds. */
export function taintValue(nowMs: number): string {
  return String(Math.floor(nowMs / 1000))
}

export function hardTaintOf(node: Node): Taint | undefined {
  return taintOf(node, toBeDeletedTaint)
}

export function softTaintOf(node: Node): Taint | undefined {
  return taintOf(node, deletionCandidateTaint)
}

/** When a taint was set; undefined if its value is invalid. */
export function taintTimeMs(taint: Taint): number | undefined {
  const value = taint.value ?? ''
  return /^\d{1,12}$/.test(value) ? Number(value) * 1000 : undefined
}

/**
 * Adds the deletion taint and cordons the node in the same write.
 * @returns undefined if it is tainted already.
 */
export function withHardTaint(node: Node, value: string, cordon: boolean): Node | undefined {
  if (hardTaintOf(node) !== undefined) return undefined
  const tainted = withTaint(node, { key: toBeDeletedTaint, value, effect: 'NoSchedule' })
  if (!cordon) return tainted
  if (node.spec?.unschedulable === true) return withAnnotation(tainted, annotations.cordonedBefore, 'true')
  return { ...tainted, spec: { ...tainted.spec, unschedulable: true } }
}

/**
 * Reverts {@link withHardTaint}. An annotation keeps, also across restarts, that a node was cordoned before; it then
 * stays cordoned. Otherwise the cordon is removed, as in Cluster Autoscaler.
 * @returns undefined if the node is not tainted.
 */
export function withoutHardTaint(node: Node, uncordon: boolean): Node | undefined {
  if (hardTaintOf(node) === undefined) return undefined
  const clean = withoutTaint(node, toBeDeletedTaint)
  const wasCordoned = ownValue(node.metadata.annotations, annotations.cordonedBefore) !== undefined
  if (wasCordoned) return withoutAnnotation(clean, annotations.cordonedBefore)
  if (!uncordon || clean.spec?.unschedulable !== true) return clean
  const { unschedulable: _, ...spec } = clean.spec
  return { ...clean, spec }
}

/** @returns undefined if nothing must be written, also for a node being deleted. */
export function withSoftTaint(node: Node, value: string): Node | undefined {
  if (softTaintOf(node) !== undefined || hardTaintOf(node) !== undefined) return undefined
  return withTaint(node, { key: deletionCandidateTaint, value, effect: 'PreferNoSchedule' })
}

export function withoutSoftTaint(node: Node): Node | undefined {
  return softTaintOf(node) === undefined ? undefined : withoutTaint(node, deletionCandidateTaint)
}

function taintOf(node: Node, key: string): Taint | undefined {
  return node.spec?.taints?.find((taint) => taint.key === key)
}

function withTaint(node: Node, taint: Taint): Node {
  return { ...node, spec: { ...node.spec, taints: [...(node.spec?.taints ?? []), taint] } }
}

function withoutTaint(node: Node, key: string): Node {
  const taints = (node.spec?.taints ?? []).filter((taint) => taint.key !== key)
  return { ...node, spec: { ...node.spec, taints } }
}

function withAnnotation(node: Node, key: string, value: string): Node {
  return {
    ...node,
    metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, [key]: value } },
  }
}

function withoutAnnotation(node: Node, key: string): Node {
  const { [key]: _, ...kept } = node.metadata.annotations ?? {}
  return { ...node, metadata: { ...node.metadata, annotations: kept } }
}
