/** Problems of the labels of a CleverNodeClass (clever-cloud.md 9, 10). */
import { karpenterGroup, labelValueProblem, qualifiedNameProblem } from '@tenon/api'
import type { OfflineFinding } from '@tenon/provider'
import type { CleverNodeClass } from './types.ts'

/** Clever Cloud refuses NodeGroups with labels of these prefixes. */
export const platformPrefixes = ['kubernetes.io/', 'node.kubernetes.io/', 'clever-cloud.com/'] as const

/**
 * Why a NodeGroup must not have a label, as a clause; undefined if it may. Such a label of a NodeClaim is set when its
 * node registers; that of a node class is never set.
 */
export function omissionOf(key: string, value: string): string | undefined {
  const prefix = platformPrefixes.find((each) => key.startsWith(each))
  if (prefix !== undefined) return `Clever Cloud refuses keys that start with ${prefix}`
  if (key.includes('kubernetes.io/')) return 'labels of Kubernetes are set when a node registers'
  // A second node of a group that a user scaled up would seem to belong to the NodePool (clever-cloud.md 20).
  if (key.startsWith(`${karpenterGroup}/`)) return `labels of ${karpenterGroup} are set when a node registers`
  return value.length > 63 ? 'its value is longer than 63 characters' : undefined
}

/** Errors make `ValidationSucceeded` false; warnings name labels that no node gets. */
export function findingsOf(nodeClass: Pick<CleverNodeClass, 'spec'>): readonly OfflineFinding[] {
  return Object.entries(nodeClass.spec?.labels ?? {}).flatMap(([key, value]): readonly OfflineFinding[] => {
    const finding = findingOf(key, value)
    return finding === undefined ? [] : [{ field: `spec.labels[${JSON.stringify(key)}]`, ...finding }]
  })
}

function findingOf(key: string, value: string): Omit<OfflineFinding, 'field'> | undefined {
  const prefix = platformPrefixes.find((each) => key.startsWith(each))
  if (prefix !== undefined)
    return {
      severity: 'error',
      message: `keys that start with ${prefix} are reserved: Clever Cloud refuses them`,
      fix: 'use another key',
    }
  const keyProblem = qualifiedNameProblem(key)
  if (keyProblem !== undefined)
    return { severity: 'error', message: `not a label key: ${keyProblem}`, fix: 'write a key such as team' }
  if (value.length > 63)
    return {
      severity: 'error',
      message: `its value has ${value.length} characters, more than the 63 of a label`,
      fix: 'write a shorter value',
    }
  const valueProblem = labelValueProblem(value)
  if (valueProblem !== undefined)
    return { severity: 'error', message: valueProblem, fix: 'write a value such as platform' }
  const omission = omissionOf(key, value)
  if (omission === undefined) return undefined
  return {
    severity: 'warning',
    message: `no node gets this label: ${omission}`,
    fix: 'write it under spec.template.metadata.labels of the NodePool',
  }
}
