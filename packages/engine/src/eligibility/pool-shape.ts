/** Whether NodePools, instance types and pod templates of DaemonSets are valid. */
import { isKnownPrice, mostPricePerHour } from '@tenon/api'
import { podSpec } from './pod-shape.ts'
import {
  fields,
  integer,
  listOf,
  mapOf,
  misfits,
  nonEmptyText,
  oneOf,
  optional,
  plain,
  quantity,
  type Shape,
  type ShapeProblem,
  text,
} from './shape-check.ts'

const requirement = fields({
  key: nonEmptyText,
  operator: oneOf('In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt', 'Gte', 'Lte'),
  values: optional(listOf(text)),
  minValues: optional(integer),
})
const taint = fields({ key: nonEmptyText, value: optional(text), effect: text })
const nodePool = fields({
  metadata: fields({ name: nonEmptyText }),
  spec: fields({
    weight: optional(integer),
    limits: optional(mapOf(quantity)),
    template: fields({
      metadata: optional(fields({ labels: optional(mapOf(text)) })),
      spec: fields({
        nodeClassRef: fields({ group: text, kind: nonEmptyText, name: text }),
        requirements: optional(listOf(requirement)),
        taints: optional(listOf(taint)),
      }),
    }),
  }),
})

const amount: Shape = plain('a number', Number.isFinite)
const price: Shape = plain(`a number from 0 to ${mostPricePerHour}`, isKnownPrice)
const instanceType = fields({
  name: nonEmptyText,
  requirements: listOf(requirement),
  offerings: listOf(
    fields({
      requirements: listOf(requirement),
      pricePerHour: optional(price),
      reservationCapacity: optional(amount),
      capacityOverride: optional(mapOf(amount)),
      overheadOverride: optional(mapOf(amount)),
    }),
  ),
  capacity: mapOf(amount),
  overhead: fields({
    kubeReserved: mapOf(amount),
    systemReserved: mapOf(amount),
    evictionThreshold: mapOf(amount),
  }),
})

/** @throws TypeError that names every invalid field of the NodePool. */
export function requireReadablePool(value: unknown): void {
  require(value, nodePool)
}

/** @throws TypeError that names every invalid field of the instance type. */
export function requireReadableType(value: unknown): void {
  require(value, instanceType)
}

/** @throws TypeError that names every invalid field of the pod's spec. */
export function requireReadableSpec(value: unknown): void {
  require(value, podSpec)
}

function require(value: unknown, shape: Shape): void {
  const problems = misfits(value, shape)
  if (problems.length > 0) throw new TypeError(shapeProblemText(problems))
}

/** Example: `spec.x must be a list; spec.y must be a text`. */
export function shapeProblemText(problems: readonly ShapeProblem[]): string {
  return problems.map(({ field, expected }) => `${field} must be ${expected}`).join('; ')
}
