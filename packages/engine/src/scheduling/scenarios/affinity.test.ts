/** Pods that want to be near others, or apart (scheduling.md 9.6, 9.7, 16). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels, type Pod } from '@tenon/api'
import {
  aCluster,
  aFullNode,
  anAppPod,
  aNode,
  anExpression,
  anInput,
  aPool,
  aPoolInput,
  boundTo,
  failureTexts,
  placedOn,
  podNames,
  podsPerDomain,
  preferringPods,
  requiring,
  requiringPods,
  times,
  typesIn,
  valuesOn,
} from '../../testing/builders.test-support.ts'
import { nextLoop } from '../../testing/next-loop.test-support.ts'
import { schedule } from '../schedule.ts'

const { zone, hostname } = labels
const zones = ['zone-1', 'zone-2', 'zone-3']
/** Cheapest in the second zone, so that following a pod there is no accident of order. */
const types = typesIn(...zones).map((type): InstanceType => {
  const [first, second, ...rest] = type.offerings
  return second === undefined || first === undefined
    ? type
    : { ...type, offerings: [first, { ...second, pricePerHour: (second.pricePerHour ?? 0) / 2 }, ...rest] }
})
const pools = [aPoolInput(aPool(), types)]

const near = (key: string, app: string, rest = {}) => requiringPods('podAffinity', key, app, rest)
const apart = (key: string, app: string) => requiringPods('podAntiAffinity', key, app)
const pinned = (to: string) => ({ nodeSelector: { [zone]: to } })
const failed = (result: ReturnType<typeof schedule>) => podNames(result.failures.map(({ pod }) => pod))
const aNodeInEachZone = zones.map((at, index) => aFullNode(`n${index + 1}`, at))

describe('pods that want to be together', () => {
  test('SCH-113 three pods with affinity to their own kind share one zone', () => {
    const pods = times(3, () => anAppPod('web', near(zone, 'web'), '12'))
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.deepEqual(failures, [])
    assert.equal(claims.length, 3)
    const counts = podsPerDomain(claims, zone)
    assert.deepEqual(Object.values(counts), [3])
    assert.ok(zones.includes(Object.keys(counts)[0] ?? ''))
  })

  test('SCH-114 what does not fit on the shared host waits, in the next loop as well', () => {
    const input = anInput({ pods: times(5, () => anAppPod('web', near(hostname, 'web'), '5')), pools })
    const first = schedule(input)
    assert.deepEqual(
      first.claims.map((claim) => claim.pods.length),
      [3],
    )
    assert.equal(first.failures.length, 2)
    const second = schedule(nextLoop(input, first))
    assert.deepEqual([second.claims, second.placements], [[], []])
    assert.deepEqual(failed(second), failed(first))
  })

  test('SCH-115 a host of the kind outside the zones allowed keeps its followers pending', () => {
    const nodes = [aNode('n1', { labels: { [zone]: 'zone-1', [hostname]: 'n1' } })]
    const inZones = requiring([anExpression(zone, 'In', 'zone-2', 'zone-3')]).affinity
    const pods = times(2, () =>
      anAppPod('web', { affinity: { ...inZones, ...near(hostname, 'web').affinity } }),
    )
    const result = schedule(
      anInput({ pods, pools, nodes, topology: aCluster(nodes, [boundTo('n1', anAppPod('web'))]) }),
    )
    assert.deepEqual([result.claims, result.placements], [[], []])
    assert.deepEqual(failed(result), podNames(pods))
  })

  test('SCH-116 RPT-50 only the first pod of a self-affinity opens a domain', () => {
    const pods = ['zone-1', 'zone-2'].map((to) => anAppPod('web', { ...near(zone, 'web'), ...pinned(to) }))
    const result = schedule(anInput({ pods, pools }))
    assert.deepEqual(podsPerDomain(result.claims, zone), { 'zone-1': 1 })
    assert.deepEqual(failed(result), [pods[1]?.metadata.name])
  })

  test('SCH-117 affinity to a pod that does not exist keeps its pod pending', () => {
    for (const key of [zone, hostname]) {
      const pod = anAppPod('client', near(key, 'server'))
      const result = schedule(anInput({ pods: [pod, anAppPod('other')], pools }))
      assert.deepEqual(failed(result), [pod.metadata.name])
      assert.match(failureTexts(result)[pod.metadata.name] ?? '', /pod affinity over /)
      assert.equal(result.claims.length, 1)
    }
  })

  test('SCH-118 a chain of affinities is placed in one batch, whatever comes first', () => {
    const chain = [
      anAppPod('ui', near(hostname, 'cache'), '4'),
      anAppPod('cache', near(hostname, 'web'), '3'),
      anAppPod('web', near(hostname, 'db'), '2'),
      anAppPod('db', {}, '1'),
    ]
    const { claims, failures } = schedule(anInput({ pods: chain, pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => podNames(claim.pods)),
      [podNames(chain)],
    )
  })

  test('SCH-119 a target in another namespace counts if the term names the namespace or selects all', () => {
    const plain = anAppPod('server')
    const server: Pod = { ...plain, metadata: { ...plain.metadata, namespace: 'other' } }
    const run = (rest: object) => {
      const client = anAppPod('client', near(hostname, 'server', rest))
      const namespaces = new Map([
        ['default', {}],
        ['other', {}],
      ])
      const result = schedule(
        anInput({ pods: [client, server], pools, topology: { ...aCluster([]), namespaces } }),
      )
      return { result, client }
    }
    const unnamed = run({})
    assert.deepEqual(failed(unnamed.result), [unnamed.client.metadata.name])
    for (const rest of [{ namespaces: ['other'] }, { namespaceSelector: {} }]) {
      const { result, client } = run(rest)
      assert.deepEqual(failed(result), [])
      assert.deepEqual(
        result.claims.map((claim) => podNames(claim.pods)),
        [podNames([client, server])],
      )
    }
  })

  test('SCH-161 followers wait until the zone of their target is known', () => {
    const followers = times(10, () => anAppPod('client', near(zone, 'server'), '2'))
    const open = anAppPod('server', {}, '3')
    const input = anInput({ pods: [open, ...followers], pools })
    const first = schedule(input)
    assert.deepEqual(
      first.claims.map((claim) => podNames(claim.pods)),
      [[open.metadata.name]],
    )
    assert.deepEqual(failed(first), podNames(followers))
    const next = nextLoop(input, first)
    const second = schedule(next)
    assert.deepEqual(second.failures, [])
    const home = next.nodes[0]?.labels[zone] ?? ''
    assert.deepEqual(second.placements, [])
    assert.deepEqual(podsPerDomain(second.claims, zone), { [home]: 10 })

    const fixed = anAppPod('server', pinned('zone-3'), '3')
    const atOnce = schedule(anInput({ pods: [fixed, ...followers], pools }))
    assert.deepEqual(atOnce.failures, [])
    assert.deepEqual(podsPerDomain(atOnce.claims, zone), { 'zone-3': 11 })
  })
})

describe('pods that want to be apart', () => {
  test('SCH-120 with a pod to avoid in every zone there is no place', () => {
    const taken = zones.map((at) => anAppPod('web', pinned(at), '2'))
    const shy = anAppPod('db', apart(zone, 'web'))
    const result = schedule(anInput({ pods: [...taken, shy], pools }))
    assert.deepEqual(failed(result), [shy.metadata.name])
    assert.match(failureTexts(result)[shy.metadata.name] ?? '', /pod anti-affinity over topology/)
    assert.deepEqual(podsPerDomain(result.claims, zone), { 'zone-1': 1, 'zone-2': 1, 'zone-3': 1 })
  })

  test('SCH-121 a pod to avoid that may still go anywhere leaves no zone in this loop', () => {
    const target = anAppPod('web', {}, '2')
    const shy = anAppPod('db', apart(zone, 'web'))
    const result = schedule(anInput({ pods: [target, shy], pools }))
    assert.deepEqual(failed(result), [shy.metadata.name])
    assert.deepEqual(
      result.claims.map((claim) => podNames(claim.pods)),
      [[target.metadata.name]],
    )
  })

  test('SCH-122 a pod avoided by one in an unknown zone waits, and goes elsewhere next', () => {
    const shy = anAppPod('db', apart(zone, 'web'), '2')
    const plain = anAppPod('web')
    const input = anInput({ pods: [shy, plain], pools })
    const first = schedule(input)
    assert.deepEqual(failed(first), [plain.metadata.name])
    assert.deepEqual(
      first.claims.map((claim) => podNames(claim.pods)),
      [[shy.metadata.name]],
    )
    const next = nextLoop(input, first)
    const second = schedule(next)
    assert.deepEqual([second.failures, second.placements], [[], []])
    const elsewhere = zones.filter((at) => at !== next.nodes[0]?.labels[zone])
    assert.deepEqual(
      second.claims.map((claim) => valuesOn(claim, zone)),
      [elsewhere],
    )
  })

  test('SCH-123 running pods that avoid it in every zone bar a pod by requirement, not by preference', () => {
    const run = (spec: Partial<Pod['spec']>) => {
      const shy = aNodeInEachZone.map(({ name }) => boundTo(name, anAppPod('db', spec)))
      return schedule(
        anInput({
          pods: [anAppPod('web')],
          pools,
          nodes: aNodeInEachZone,
          topology: aCluster(aNodeInEachZone, shy),
        }),
      )
    }
    const required = run(apart(zone, 'web'))
    assert.deepEqual([required.claims, required.failures.length], [[], 1])
    const preferred = run(preferringPods('podAntiAffinity', zone, 'web'))
    assert.deepEqual([preferred.claims.length, preferred.failures], [1, []])
  })

  test('SCH-124 pods that avoid their own kind take one zone a loop', () => {
    let input = anInput({ pods: times(3, () => anAppPod('web', apart(zone, 'web'))), pools })
    for (const left of [2, 1, 0]) {
      const result = schedule(input)
      assert.deepEqual(
        result.claims.map((claim) => claim.pods.length),
        [1],
      )
      assert.deepEqual(placedOn(result), {})
      assert.equal(result.failures.length, left)
      input = nextLoop(input, result)
    }
    assert.deepEqual(input.nodes.map((node) => node.labels[zone] ?? '').toSorted(), zones)
  })
})
