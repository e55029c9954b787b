/** What an infrastructure template says about its machines (cluster-api.md 6). */
import {
  isLabelValue,
  isQuantity,
  isRecord,
  type KubeObject,
  parseResource,
  type Resources,
  setOwn,
} from '@tenon/api'

/** The known facts about a template. */
export interface TemplateFacts {
  readonly capacity: Resources
  readonly architecture?: string
  readonly operatingSystem?: string
  /** Why the last read failed: a clause without a full stop. */
  readonly problem?: string
}

/**
 * The part of a template that Cluster API's contract defines. Its infrastructure provider writes it, so any field may
 * be invalid.
 */
export interface InfrastructureTemplate extends KubeObject {
  readonly status?: unknown
}

/** Facts in `status`. Invalid amounts are left out; if one is not a string, all are. */
export function factsIn({ status }: InfrastructureTemplate): TemplateFacts {
  const { capacity, nodeInfo } = members(status)
  const { architecture, operatingSystem } = members(nodeInfo)
  return {
    capacity: amountsIn(capacity),
    ...(isName(architecture) && { architecture }),
    ...(isName(operatingSystem) && { operatingSystem }),
  }
}

function amountsIn(capacity: unknown): Resources {
  const entries = Object.entries(members(capacity))
  const amounts: Record<string, number> = {}
  if (!entries.every((entry): entry is [string, string] => typeof entry[1] === 'string')) return amounts
  for (const [resource, text] of entries) {
    const amount = isQuantity(text) ? parseResource(resource, text) : -1
    if (amount >= 0 && Number.isFinite(amount)) setOwn(amounts, resource, amount)
  }
  return amounts
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && isLabelValue(value)
}

function members(value: unknown): Readonly<Partial<Record<string, unknown>>> {
  return isRecord(value) ? value : {}
}
