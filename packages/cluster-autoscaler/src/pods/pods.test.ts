import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pod } from '@tenon/api'
import { PodReader, Snapshot, VolumeIndex } from '@tenon/filters'
import { finished } from '../testing/steps.test-support.ts'
import { defaultOptions, type LoopOptions } from '../options/options.ts'
import { aNode, aPod, pods, startMs } from '../testing/objects.test-support.ts'
import { classify } from './classes.ts'
import { podGroups } from './equivalence.ts'
import { pendingPods } from './pending-pods.ts'
import { unbound } from './unbound.ts'
import { areAllNew, oldEnough } from './young-pods.ts'

function classOf(pod: Pod, options: Partial<LoopOptions> = {}): string | undefined {
  const classes = finished(
    classify(
      [pod],
      { ...defaultOptions.loop, ...options },
      { isReadable: () => true, isPlanned: () => false, isConsumer: () => false, read: (each) => each },
    ),
  )
  return Object.entries(classes).find(([, list]) => list.length > 0)?.[0]
}

/** A pod with another status. */
function withStatus(pod: Pod, status: Pod['status']): Pod {
  return { ...pod, status: { ...status } }
}

function left(
  unschedulable: readonly Pod[],
  nodes = [aNode('n')],
  running: readonly Pod[] = [],
  cutoff = -10,
) {
  const snapshot = new Snapshot({
    reader: new PodReader(),
    volumes: new VolumeIndex(),
    namespaces: new Map([['default', {}]]),
  })
  for (const node of nodes) snapshot.setNode(node)
  for (const pod of running) snapshot.assign(pod, pod.spec.nodeName ?? '')
  const { pods: pending, overflowing } = finished(
    pendingPods(unschedulable, snapshot, new Map(), new Map(), cutoff),
  )
  return { names: pending.map(({ metadata }) => metadata.name), overflowing, snapshot }
}

describe('what a pod counts as', () => {
  test('CAS-43 a nominated pod asks for nothing', () => {
    const pod = aPod('p')
    assert.equal(classOf(withStatus(pod, { ...pod.status, nominatedNodeName: 'n' })), 'nominated')
  })

  test('CAS-44 gated pods and those of other schedulers do not count, unless that one is bypassed', () => {
    const gated: Pod = withStatus(aPod('p'), {
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }],
    })
    assert.equal(classOf(gated), undefined)
    const custom = withStatus(aPod('p', { spec: { schedulerName: 'mine' } }), {})
    assert.equal(classOf(custom), undefined)
    assert.equal(classOf(custom, { bypassedSchedulerNames: ['mine'] }), 'unprocessed')
    assert.equal(
      classOf(withStatus(aPod('p'), {}), { bypassedSchedulerNames: ['default-scheduler'] }),
      'unprocessed',
    )
    assert.equal(classOf(aPod('p', { spec: { schedulerName: 'mine' } })), 'unschedulable')
    assert.equal(
      classOf(aPod('p', { spec: { schedulerName: 'mine' } }), {
        allowedSchedulerNames: ['default-scheduler'],
      }),
      undefined,
    )
  })

  test('bound, ended and deleted pods', () => {
    assert.equal(classOf(aPod('p', { nodeName: 'n' })), 'scheduled')
    assert.equal(classOf(withStatus(aPod('p', { nodeName: 'n' }), { phase: 'Succeeded' })), undefined)
    assert.equal(classOf(aPod('p', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })), undefined)
    assert.equal(classOf(aPod('p')), 'unschedulable')
  })
})

describe('which pods need a node', () => {
  test('CAS-41 one that fits what is free, or on its way, needs none', () => {
    assert.deepEqual(left([aPod('p', { cpu: '1' })]).names, [])
    assert.deepEqual(left([aPod('p', { cpu: '5' })]).names, ['p'])
  })

  test('CAS-42 a priority below the cutoff never counts; none does', () => {
    const of = (name: string, priority?: number) =>
      aPod(name, { cpu: '9', spec: priority === undefined ? {} : { priority } })
    assert.deepEqual(left([of('low', -11), of('edge', -10), of('none')]).names, ['none', 'edge'])
  })

  test('CAS-43 a nominated pod holds its place', () => {
    const nominated = aPod('first', { cpu: '3', nodeName: 'n' })
    assert.deepEqual(left([aPod('p', { cpu: '2' })], [aNode('n')], [nominated]).names, ['p'])
  })

  test('CAS-47 pods of DaemonSets never count', () => {
    const daemon = aPod('d', { cpu: '9', owner: 'ds', ownerKind: 'DaemonSet' })
    const marked = aPod('m', {
      cpu: '9',
      annotations: { 'cluster-autoscaler.kubernetes.io/daemonset-pod': 'true' },
    })
    assert.deepEqual(left([daemon, marked]).names, [])
  })

  test('CAS-48 a pod of a node that is being drained needs a place elsewhere', () => {
    const moving = aPod('m', { cpu: '3', nodeName: 'going' })
    const nodes = [aNode('going', { unschedulable: true }), aNode('full')]
    const fill = aPod('fill', { cpu: '4', nodeName: 'full' })
    assert.deepEqual(left([unbound(moving)], nodes, [moving, fill]).names, ['m'])
    assert.deepEqual(left([unbound(moving)], nodes, [moving]).names, [])
  })

  test('the most important pods come first and take the room', () => {
    const low = aPod('low', { cpu: '3' })
    const high = aPod('high', { cpu: '3', spec: { priority: 5 } })
    assert.deepEqual(left([low, high]).names, ['low'])
  })

  test('of a controller with more than ten kinds of pods the others are tried one by one', () => {
    const kinds = Array.from({ length: 12 }, (_, index) =>
      aPod(`k${index}`, { owner: 'a', cpu: `${9 + index}` }),
    )
    const { names, overflowing } = left([...kinds, ...kinds.map((pod) => ({ ...pod }))])
    assert.equal(names.length, 24)
    assert.equal(overflowing, 1)
  })

  test('TPUs do not count', () => {
    const tpu = aPod('t', {
      spec: {
        containers: [
          { name: 'main', resources: { requests: { cpu: '1', 'cloud-tpus.google.com/v2': '8' } } },
        ],
      },
    })
    assert.deepEqual(left([tpu]).names, [])
  })
})

describe('young pods', () => {
  test('CAS-45 all younger than two seconds, or all GPU pods younger than thirty', () => {
    const young = aPod('p', { ageMs: 1900 })
    assert.equal(areAllNew([young], startMs), true)
    assert.equal(areAllNew([young, aPod('q', { ageMs: 2000 })], startMs), false)
    const gpu = (ageMs: number) =>
      aPod('g', {
        ageMs,
        spec: { containers: [{ name: 'main', resources: { limits: { 'nvidia.com/gpu': '1' } } }] },
      })
    assert.equal(areAllNew([gpu(10_000), aPod('q')], startMs), true)
    assert.equal(areAllNew([gpu(31_000)], startMs), false)
  })

  test('CAS-46 the longer of flag and annotation holds a pod back; what cannot be read counts for nothing', () => {
    const pod = (ageMs: number, delay?: string) =>
      aPod('p', {
        ageMs,
        ...(delay !== undefined && {
          annotations: { 'cluster-autoscaler.kubernetes.io/pod-scale-up-delay': delay },
        }),
      })
    const isHeld = (each: Pod, flagMs: number) => oldEnough([each], flagMs, startMs).pods.length === 0
    assert.equal(isHeld(pod(60_000, '5m'), 0), true)
    assert.equal(isHeld(pod(301_000, '5m'), 0), false)
    assert.equal(isHeld(pod(180_000, '2m'), 300_000), true)
    assert.equal(isHeld(pod(301_000, '2m'), 300_000), false)
    assert.equal(isHeld(pod(10_000, 'soon'), 0), false)
    assert.equal(oldEnough([pod(10_000, 'soon')], 0, startMs).unreadable.length, 1)
    assert.equal(isHeld(pod(1000), 0), false)
  })
})

describe('pods alike', () => {
  const sizes = (list: readonly Pod[]) => podGroups(list).groups.map((group) => group.pods.length)

  test('what a scheduler does not look at does not tell pods apart', () => {
    const [plain] = pods('a', 1, { cpu: '1' })
    const varied = pods('a', 4, { cpu: '1' }).map((pod, index): Pod => {
      const [container] = pod.spec.containers
      const spec = {
        ...pod.spec,
        hostname: `h${index}`,
        volumes: [{ name: `token-${index}`, projected: {} }],
        containers: [
          {
            ...container,
            name: 'main',
            env: [{ name: 'X', value: `${index}` }],
            volumeMounts: [{ name: `token-${index}` }],
          },
        ],
      }
      return { ...pod, spec }
    })
    assert.deepEqual(sizes([...varied, plain as Pod]), [5])
    assert.deepEqual(sizes([...varied, ...pods('a', 1, { cpu: '2' })]), [4, 1])
  })

  test('pods without a controller stand alone, and so do kinds beyond ten', () => {
    assert.deepEqual(sizes([aPod('a', { cpu: '1' }), aPod('b', { cpu: '1' })]), [1, 1])
    const kinds = Array.from({ length: 12 }, (_, index) =>
      aPod(`k${index}`, { owner: 'a', cpu: `${1 + index}` }),
    )
    const twice = [
      ...kinds,
      ...kinds.map((pod) => ({ ...pod, metadata: { ...pod.metadata, uid: `${pod.metadata.uid}-2` } })),
    ]
    assert.deepEqual(
      sizes(twice).toSorted((a, b) => a - b),
      [1, 1, 1, 1, ...Array.from({ length: 10 }, () => 2)],
    )
    assert.equal(podGroups(twice).overflowing, 1)
  })
})
