/** Keys that users choose may be called like what every plain object inherits (reports.md 8). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type PodSpec, type Taint } from '@tenon/api'
import * as fc from 'fast-check'
import type { SchedulingInput } from '../input/input.ts'
import { problemOf } from './problem/problem.ts'
import {
  aNode,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  failureTexts,
  typesIn,
} from '../testing/builders.test-support.ts'
import { schedule } from './schedule.ts'

/** In the order of the names and as long, so that ties fall alike. */
const names = ['__proto__', 'constructor', 'hasOwnProperty', 'length', 'toString', 'valueOf'] as const
const plain = ['aaaaaaaaa', 'constructoa', 'hasOwnPropertz', 'lengti', 'toStrinh', 'valueOg'] as const
const hostileOf = new Map<string, string>(plain.map((name, at) => [name, names[at] ?? name]))
const runs = Number(process.env['TENON_NAME_CASES'] ?? 300)

const key = fc.constantFrom(...plain)
const value = fc.constantFrom('a', 'b', 'c')
const taint = fc.record({
  key,
  value,
  effect: fc.constantFrom('NoSchedule', 'NoExecute'),
}) as fc.Arbitrary<Taint>
const labelling = fc.dictionary(key, value, { maxKeys: 3 })
const expression = fc.record({
  key,
  operator: fc.constantFrom('In', 'NotIn', 'Exists', 'DoesNotExist'),
  values: fc.constantFrom(['a'], ['a', 'b'], ['c']),
})
const selector = fc.record({
  matchLabels: labelling,
  matchExpressions: fc.array(expression, { maxLength: 1 }),
})
const term = fc.record({ topologyKey: fc.oneof(key, fc.constant(labels.zone)), labelSelector: selector })

function withoutNeedlessValues<T extends { readonly operator: string }>(each: T): T {
  return each.operator === 'Exists' || each.operator === 'DoesNotExist' ? { ...each, values: [] } : each
}

const podOf = fc
  .record(
    {
      labels: labelling,
      nodeSelector: labelling,
      terms: fc.array(fc.array(expression, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 2 }),
      tolerations: fc.array(fc.record({ key, operator: fc.constantFrom('Exists', 'Equal'), value }), {
        maxLength: 3,
      }),
      spread: term,
      apart: term,
      together: term,
      device: key,
    },
    { requiredKeys: ['labels'] },
  )
  .map((drawn) => {
    const requests = { cpu: '500m', ...(drawn.device !== undefined && { [drawn.device]: '1' }) }
    const spec = {
      ...(drawn.nodeSelector && { nodeSelector: drawn.nodeSelector }),
      ...(drawn.tolerations && {
        tolerations: drawn.tolerations.map((each) =>
          each.operator === 'Exists' ? { key: each.key, operator: each.operator } : each,
        ),
      }),
      ...(drawn.spread && {
        topologySpreadConstraints: [{ ...drawn.spread, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }],
      }),
      affinity: {
        ...(drawn.terms && {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: drawn.terms.map((matchExpressions) => ({
                matchExpressions: matchExpressions.map(withoutNeedlessValues),
              })),
            },
          },
        }),
        ...(drawn.apart && {
          podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [drawn.apart] },
        }),
        ...(drawn.together && {
          podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [drawn.together] },
        }),
      },
    } as Partial<PodSpec>
    const pod = aPod(requests, spec)
    return { ...pod, metadata: { ...pod.metadata, labels: drawn.labels } }
  })

const inputs: fc.Arbitrary<SchedulingInput> = fc
  .record({
    pods: fc.array(podOf, { minLength: 1, maxLength: 6 }),
    poolLabels: labelling,
    poolKey: key,
    taints: fc.array(taint, { maxLength: 1 }),
    nodeLabels: fc.array(labelling, { maxLength: 2 }),
    nodeTaints: fc.array(taint, { maxLength: 1 }),
    device: key,
  })
  .map(({ pods, poolLabels, poolKey, taints, nodeLabels, nodeTaints, device }) => {
    const requirements = [{ key: poolKey, operator: 'In' as const, values: ['a', 'b'] }]
    const pool = aPool('default', {}, { requirements, taints })
    const template = { ...pool.spec.template, metadata: { labels: poolLabels } }
    const types = typesIn('zone-1', 'zone-2').map((type) => ({
      ...type,
      capacity: { ...type.capacity, [device]: 4 },
    }))
    const nodes = nodeLabels.map((own, i) => {
      const node = aNode(`node-${i}`, { taints: nodeTaints })
      return { ...node, labels: { ...node.labels, ...own } }
    })
    return anInput({
      pods,
      nodes,
      pools: [aPoolInput({ ...pool, spec: { ...pool.spec, template } }, types)],
      topology: {
        pods: [],
        nodes: new Map(
          nodes.map(({ name, labels: tags, taints: own }) => [
            name,
            { hostname: name, labels: tags, taints: own, isCandidate: true },
          ]),
        ),
        namespaces: new Map([['default', { [plain[1]]: 'a' }]]),
      },
    })
  })

/** The same with other names, wherever a name is a key or stands in a text by itself. */
function renamed<T>(given: T, names_: ReadonlyMap<string, string>): T {
  const rename = (each: unknown): unknown => {
    if (typeof each === 'string') return names_.get(each) ?? each
    if (Array.isArray(each)) return each.map(rename)
    if (each instanceof Map) return new Map([...each].map(([name, part]) => [rename(name), rename(part)]))
    if (each instanceof Set) return new Set([...each].map(rename))
    if (typeof each !== 'object' || each === null) return each
    return Object.fromEntries(
      Object.entries(each).map(([name, part]) => [names_.get(name) ?? name, rename(part)]),
    )
  }
  return rename(given) as T
}

/** What was decided, without guesses at what was meant, which go by the names. */
function decisionOn(input: SchedulingInput): string {
  const result = schedule(input)
  return JSON.stringify({
    claims: result.claims.map(({ nodePool, requirements, pods }) => ({
      nodePool,
      requirements,
      pods: pods.map(({ metadata }) => metadata.name),
    })),
    failures: Object.entries(failureTexts(result)),
  }).replaceAll(/ \(did you mean [^)]*\)/g, '')
}

const words = (text: string) =>
  names.reduce((rest, name, at) => rest.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), plain[at] ?? name), text)

test('RPT-32 keys with inherited names change no decision, and every problem can be sent to a thread', () => {
  fc.assert(
    fc.property(inputs, (input) => {
      const hostile = renamed(input, hostileOf)
      structuredClone(problemOf(hostile))
      assert.equal(words(decisionOn(hostile)), decisionOn(input))
    }),
    { numRuns: runs, seed: 32 },
  )
})
