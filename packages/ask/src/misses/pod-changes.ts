/** Changes of a pod or of its template. */
import {
  type NodeSelectorRequirement,
  type NodeSelectorTerm,
  type Pod,
  type Taint,
  taintText,
} from '@tenon/api'
import { type Change, pointer } from './change.ts'

const pod = { kind: 'pod' } as const

/** One toleration for each taint. */
export function tolerations({ spec }: Pod, taints: readonly Taint[]): readonly Change[] {
  const hasSome = (spec.tolerations ?? []).length > 0
  return taints.map(({ key, value = '', effect }) => {
    const toleration = {
      key,
      ...(value === '' ? { operator: 'Exists' } : { operator: 'Equal', value }),
      effect,
    }
    return {
      kind: 'addToleration',
      target: pod,
      field: 'spec.tolerations',
      words: `tolerate ${taintText({ key, value, effect })}`,
      operations: [
        hasSome
          ? { op: 'add', path: pointer('spec', 'tolerations', '-'), value: toleration }
          : { op: 'add', path: pointer('spec', 'tolerations'), value: [toleration] },
      ],
    }
  })
}

/** Removes each entry of the node selector. */
export function nodeSelectors({ spec }: Pod): readonly Change[] {
  return Object.entries(spec.nodeSelector ?? {}).map(([key, value]) => ({
    kind: 'dropNodeSelector',
    target: pod,
    field: `spec.nodeSelector[${key}]`,
    words: `leave out the node selector ${key}=${value}`,
    operations: [{ op: 'remove', path: pointer('spec', 'nodeSelector', key) }],
  }))
}

const required = 'requiredDuringSchedulingIgnoredDuringExecution'
const preferred = 'preferredDuringSchedulingIgnoredDuringExecution'

/**
 * Removes each requirement of the required node affinity, or widens it by one value.
 * @param valuesOf values of a label that nodes could have.
 */
export function nodeAffinities(
  { spec }: Pod,
  valuesOf: (key: string) => readonly string[],
): readonly Change[] {
  const terms = spec.affinity?.nodeAffinity?.[required]?.nodeSelectorTerms ?? []
  const at = ['spec', 'affinity', 'nodeAffinity', required, 'nodeSelectorTerms'] as const
  return terms.flatMap((term, termAt) =>
    (term.matchExpressions ?? []).flatMap((expression, index): readonly Change[] => {
      const path = [...at, termAt, 'matchExpressions', index]
      const field = `spec.affinity.nodeAffinity.${required}.nodeSelectorTerms[${termAt}].matchExpressions[${index}]`
      const isAlone = requirementsOf(term) === 1
      // An empty term matches nothing. So a term is removed as a whole, and only if it is the only one.
      const canDrop = !isAlone || terms.length === 1
      const dropped = isAlone ? pointer('spec', 'affinity', 'nodeAffinity', required) : pointer(...path)
      return [
        ...(canDrop
          ? [
              {
                kind: 'dropNodeAffinity' as const,
                target: pod,
                field,
                words: `leave out the required node affinity ${expressionText(expression)}`,
                operations: [{ op: 'remove' as const, path: dropped }],
              },
            ]
          : []),
        ...widened(expression, valuesOf(expression.key)).map(
          ({ words, values }): Change => ({
            kind: 'widenNodeAffinity',
            target: pod,
            field: `${field}.values`,
            words,
            operations: [{ op: 'replace', path: pointer(...path, 'values'), value: values }],
          }),
        ),
      ]
    }),
  )
}

function requirementsOf({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): number {
  return matchExpressions.length + matchFields.length
}

function expressionText({ key, operator, values = [] }: NodeSelectorRequirement): string {
  return [key, operator, ...(values.length === 0 ? [] : [`[${values.join(', ')}]`])].join(' ')
}

interface Widened {
  readonly words: string
  readonly values: readonly string[]
}

/** Adds a value to an `In` list, or removes one from a `NotIn` list. */
function widened(
  { key, operator, values = [] }: NodeSelectorRequirement,
  others: readonly string[],
): readonly Widened[] {
  if (operator === 'In')
    return others
      .filter((other) => !values.includes(other))
      .map((other) => ({
        words: `allow ${other} for ${key} in the required node affinity`,
        values: [...values, other],
      }))
  if (operator !== 'NotIn' || values.length < 2) return []
  return values.map((value) => ({
    words: `allow ${value} for ${key} in the required node affinity`,
    values: values.filter((other) => other !== value),
  }))
}

/** Removes each required term of pod affinity and anti-affinity. */
export function podAffinities({ spec }: Pod): readonly Change[] {
  const parts = [
    { part: 'podAffinity', kind: 'dropPodAffinity', words: 'pod affinity' },
    { part: 'podAntiAffinity', kind: 'dropPodAntiAffinity', words: 'pod anti-affinity' },
  ] as const
  return parts.flatMap(({ part, kind, words }) =>
    (spec.affinity?.[part]?.[required] ?? []).map(
      ({ topologyKey }, index): Change => ({
        kind,
        target: pod,
        field: `spec.affinity.${part}.${required}[${index}]`,
        words: `leave out the required ${words} over ${topologyKey}`,
        operations: [{ op: 'remove', path: pointer('spec', 'affinity', part, required, index) }],
      }),
    ),
  )
}

/** Turns each required spread constraint into a preferred one. */
export function spreads({ spec }: Pod): readonly Change[] {
  return (spec.topologySpreadConstraints ?? []).flatMap(
    ({ topologyKey, whenUnsatisfiable }, index): readonly Change[] =>
      whenUnsatisfiable === 'DoNotSchedule'
        ? [
            {
              kind: 'relaxSpread',
              target: pod,
              field: `spec.topologySpreadConstraints[${index}].whenUnsatisfiable`,
              words: `make the spread over ${topologyKey} ScheduleAnyway`,
              operations: [
                {
                  op: 'replace',
                  path: pointer('spec', 'topologySpreadConstraints', index, 'whenUnsatisfiable'),
                  value: 'ScheduleAnyway',
                },
              ],
            },
          ]
        : [],
  )
}

/** Removes each kind of preference. */
export function preferences({ spec }: Pod): readonly Change[] {
  return (['nodeAffinity', 'podAffinity', 'podAntiAffinity'] as const).flatMap((part): readonly Change[] =>
    (spec.affinity?.[part]?.[preferred] ?? []).length === 0
      ? []
      : [
          {
            kind: 'dropPreference',
            target: pod,
            field: `spec.affinity.${part}.${preferred}`,
            words: `leave out the preferred ${part}`,
            operations: [{ op: 'remove', path: pointer('spec', 'affinity', part, preferred) }],
          },
        ],
  )
}
