import type { NodePool, Requirement } from '@tenon/api'
import { type Change, type ChangeTarget, pointer } from './change.ts'
import { amountText } from './quantities.ts'

function targetOf({ metadata }: NodePool): ChangeTarget {
  return { kind: 'nodePool', name: metadata.name }
}

/** Adds a label to the nodes of the pool. */
export function poolLabel(pool: NodePool, key: string, value: string): Change {
  const { metadata } = pool.spec.template
  const template = ['spec', 'template'] as const
  const operation =
    metadata === undefined
      ? { path: pointer(...template, 'metadata'), value: { labels: { [key]: value } } }
      : metadata.labels === undefined
        ? { path: pointer(...template, 'metadata', 'labels'), value: { [key]: value } }
        : { path: pointer(...template, 'metadata', 'labels', key), value }
  return {
    kind: 'labelPool',
    target: targetOf(pool),
    field: `spec.template.metadata.labels[${key}]`,
    words: `label nodes of NodePool ${pool.metadata.name} with ${key}=${value}`,
    operations: [{ op: 'add', ...operation }],
  }
}

/**
 * Removes each requirement of the pool, or widens it by one value.
 * @param valuesOf values of a label that the pool could allow.
 */
export function poolRequirements(
  pool: NodePool,
  valuesOf: (key: string) => readonly string[],
): readonly Change[] {
  const { name } = pool.metadata
  return pool.spec.template.spec.requirements.flatMap((requirement, index): readonly Change[] => {
    const field = `spec.template.spec.requirements[${index}]`
    const path = ['spec', 'template', 'spec', 'requirements', index] as const
    const about = { target: targetOf(pool) }
    const { key } = requirement
    const more = moreValues(requirement, valuesOf(key))
    return [
      ...more.map(
        ({ value, values }): Change => ({
          ...about,
          kind: 'widenPoolRequirement',
          field: `${field}.values`,
          words: `allow ${value} for ${key} in NodePool ${name}`,
          operations: [{ op: 'replace', path: pointer(...path, 'values'), value: values }],
        }),
      ),
      {
        ...about,
        kind: 'dropPoolRequirement',
        field,
        words: `leave out the requirement for ${key} of NodePool ${name}`,
        operations: [{ op: 'remove', path: pointer(...path) }],
      },
    ]
  })
}

function moreValues(
  { operator, values = [] }: Requirement,
  others: readonly string[],
): readonly { readonly value: string; readonly values: readonly string[] }[] {
  if (operator === 'In')
    return others
      .filter((value) => !values.includes(value))
      .map((value) => ({ value, values: [...values, value] }))
  if (operator !== 'NotIn' || values.length < 2) return []
  return values.map((value) => ({ value, values: values.filter((other) => other !== value) }))
}

/** @param amount in canonical units; undefined: no limit. */
export function poolLimit(pool: NodePool, resource: string, amount: number | undefined): Change {
  const path = pointer('spec', 'limits', resource)
  const { name } = pool.metadata
  const text = amount === undefined ? '' : amountText(resource, amount)
  return {
    kind: 'raiseLimit',
    target: targetOf(pool),
    field: `spec.limits[${resource}]`,
    words:
      amount === undefined
        ? `remove the limit of ${resource} of NodePool ${name}`
        : `raise the limit of ${resource} of NodePool ${name} to ${text}`,
    operations: [amount === undefined ? { op: 'remove', path } : { op: 'replace', path, value: text }],
  }
}

/** @param because what the pool waits for, a clause without a full stop. */
export function poolReady(pool: NodePool, because: string): Change {
  return {
    kind: 'readyPool',
    target: targetOf(pool),
    field: 'status.conditions[Ready]',
    words: `make NodePool ${pool.metadata.name} ready (${because})`,
    operations: [],
  }
}
