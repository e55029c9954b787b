/** Pods that claim devices, decided as a whole (devices.md 3). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Device,
  type DeviceRequest,
  type DeviceTaintRule,
  type DeviceToleration,
  type InstanceType,
  labels,
  type Pod,
  type ResourceClaim,
} from '@tenon/api'
import {
  aNode,
  aPod,
  aPool,
  aPoolInput,
  failureTexts,
  placedOn,
} from '../../testing/builders.test-support.ts'
import {
  aClaim,
  aClaimingPod,
  aDevice,
  aDeviceInput,
  aDeviceType,
  anAllocation,
  aSlice,
  aTaintRule,
  cel,
  type ClaimedPods,
  driver,
  exactly,
  gpus,
  inZone,
} from '../../testing/device-builders.test-support.ts'
import { renderPodReason } from '../../reasons/reasons.ts'
import type { SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { schedule } from '../schedule.ts'

const oneGpu = aDeviceType('one-gpu', 4, gpus(1))
const twoGpus = aDeviceType('two-gpus', 8, gpus(2))
const noGpu = aDeviceType('no-gpu', 2, [])

/** Pods that each have one claim of their own. */
function each(count: number, claim: Pick<ResourceClaim, 'spec' | 'status'> = aClaim()): ClaimedPods {
  const pods = Array.from({ length: count }, aClaimingPod)
  return {
    pods: pods.map((pod, index): readonly [Pod, string] => [pod, `claim-${index}`]),
    claims: Object.fromEntries(pods.map((_, index) => [`claim-${index}`, claim])),
  }
}

function decided(claimed: ClaimedPods, overrides: Partial<SchedulingInput> = {}): SchedulingResult {
  const pools = [aPoolInput(aPool(), [noGpu, oneGpu, twoGpus])]
  return schedule(aDeviceInput(claimed, { pools, ...overrides }))
}

const typesOf = ({ claims }: SchedulingResult) => claims.map(({ instanceTypes }) => instanceTypes)
const whys = ({ failures }: SchedulingResult) => failures.map(({ reason }) => renderPodReason(reason))

describe('new nodes', () => {
  test('BUF-39 a claim for a GPU limits the NodeClaim to types with one, and tells its driver', () => {
    const result = decided(each(1))
    assert.deepEqual(typesOf(result), [['one-gpu', 'two-gpus']])
    assert.deepEqual(result.claims[0]?.deviceDrivers, [driver])
  })

  test('BUF-40 two pods with a GPU each share a node of two, and need two nodes of one', () => {
    const both = decided(each(2))
    assert.deepEqual(typesOf(both), [['two-gpus']])
    const apart = decided(each(2), { pools: [aPoolInput(aPool(), [oneGpu])] })
    assert.deepEqual(typesOf(apart), [['one-gpu'], ['one-gpu']])
  })

  test('BUF-41 a pod without claims asks for no driver', () => {
    const result = decided({ pods: [[aPod()]], claims: {} })
    assert.deepEqual(result.claims[0]?.deviceDrivers, [])
  })

  test('BUF-37 without devices a pod that claims some finds no place', () => {
    const { devices: _, ...input } = aDeviceInput(each(1))
    const result = schedule(input)
    assert.equal(result.claims.length, 0)
    assert.match(whys(result)[0] ?? '', /uses ResourceClaims/)
  })

  test('BUF-44 a DeviceClass that is missing, and types without the device, are the reason', () => {
    const missing = decided({ ...each(1), classes: [] })
    assert.match(
      whys(missing)[0] ?? '',
      /default\/claim-0: request gpu names DeviceClass gpu, which does not exist/,
    )
    const none = decided(each(1), { pools: [aPoolInput(aPool(), [noGpu])] })
    assert.match(whys(none)[0] ?? '', /no instance type that suits the pod, has a device of DeviceClass gpu/)
    assert.equal(none.claims.length, 0)
  })

  test('BUF-49 a zonal device narrows the NodeClaim to its zone', () => {
    const claimed = { ...each(1), slices: [aSlice('shared', gpus(1), inZone('zone-2'))] }
    const result = decided(claimed, {
      pools: [aPoolInput(aPool(), [aDeviceType('plain', 2, [], ['zone-1', 'zone-2'])])],
    })
    const zones = result.claims[0]?.requirements.filter(({ key }) => key === labels.zone)
    assert.deepEqual(zones, [{ key: labels.zone, operator: 'In', values: ['zone-2'] }])
    assert.deepEqual(result.claims[0]?.deviceDrivers, [])
  })

  test('BUF-49 zonal claims with a zone in common get it; those without fail', () => {
    const pod = aClaimingPod()
    const claims = {
      a: aClaim({ requests: [exactly('a', cel(`device.attributes['${driver}'].kind == 'a'`))] }),
      b: aClaim({ requests: [exactly('b', cel(`device.attributes['${driver}'].kind == 'b'`))] }),
    }
    const of = (kind: string, zone: string) =>
      aSlice(`${kind}-${zone}`, [aDevice('d', { kind: { string: kind } })], inZone(zone))
    const pools = [aPoolInput(aPool(), [aDeviceType('plain', 2, [], ['zone-1', 'zone-2'])])]
    const pods: ClaimedPods['pods'] = [[pod, 'a', 'b']]
    const common = decided(
      { pods, claims, slices: [of('a', 'zone-1'), of('a', 'zone-2'), of('b', 'zone-2')] },
      { pools },
    )
    assert.deepEqual(common.claims[0]?.requirements.find(({ key }) => key === labels.zone)?.values, [
      'zone-2',
    ])
    const apart = decided({ pods, claims, slices: [of('a', 'zone-1'), of('b', 'zone-2')] }, { pools })
    assert.equal(apart.claims.length, 0)
  })

  test('BUF-123 a pod pinned to a zone gets the device of that zone', () => {
    const pod = aPod({ cpu: '100m' }, { nodeSelector: { [labels.zone]: 'zone-2' } })
    const slices = [aSlice('a', gpus(1), inZone('zone-1')), aSlice('b', gpus(1), inZone('zone-2'))]
    const result = decided(
      { pods: [[pod, 'claim']], claims: { claim: aClaim() }, slices },
      { pools: [aPoolInput(aPool(), [aDeviceType('plain', 2, [], ['zone-1', 'zone-2'])])] },
    )
    assert.equal(result.claims.length, 1)
  })

  test('BUF-50 pods that share a claim on the devices of a new node go to the same one', () => {
    const [a, b] = [aClaimingPod(), aClaimingPod()]
    const big = aPod({ cpu: '3' })
    const result = decided({ pods: [[a, 'one'], [b, 'one'], [big]], claims: { one: aClaim() } })
    const shared = result.claims.find(({ pods }) => pods.includes(a))
    assert.equal(shared?.pods.includes(b), true)
  })

  test('BUF-68 different types meet different alternatives', () => {
    const a100 = aDeviceType('a100', 4, gpus(1, { model: { string: 'a100' } }))
    const twoT4 = aDeviceType('t4', 4, gpus(2, { model: { string: 't4' } }))
    const model = (name: string) => cel(`device.attributes['${driver}'].model == '${name}'`)
    const claim = aClaim({
      requests: [
        {
          name: 'gpu',
          firstAvailable: [
            { name: 'big', deviceClassName: 'gpu', ...model('a100') },
            { name: 'small', deviceClassName: 'gpu', count: 2, ...model('t4') },
          ],
        },
      ],
    })
    const result = decided(each(1, claim), { pools: [aPoolInput(aPool(), [a100, twoT4, noGpu])] })
    assert.deepEqual(
      typesOf(result).map((names) => names.toSorted()),
      [['a100', 't4']],
    )
  })

  test('BUF-69 a type that meets no alternative is left out', () => {
    const a100 = aDeviceType('a100', 4, gpus(1, { model: { string: 'a100' } }))
    const oneT4 = aDeviceType('t4', 4, gpus(1, { model: { string: 't4' } }))
    const model = (name: string) => cel(`device.attributes['${driver}'].model == '${name}'`)
    const firstAvailable = [
      { name: 'big', deviceClassName: 'gpu', ...model('a100') },
      { name: 'small', deviceClassName: 'gpu', count: 2, ...model('t4') },
    ]
    const claim = aClaim({ requests: [{ name: 'gpu', firstAvailable }] })
    const result = decided(each(1, claim), { pools: [aPoolInput(aPool(), [a100, oneT4, noGpu])] })
    assert.deepEqual(typesOf(result), [['a100']])
    const none = decided(each(1, claim), { pools: [aPoolInput(aPool(), [oneT4, noGpu])] })
    assert.deepEqual([none.claims.length, none.failures.length], [0, 1])
  })
})

describe('nodes that exist', () => {
  const node = aNode('node-1', { labels: { [labels.instanceType]: 'one-gpu' } })

  test('BUF-45 a pod goes to a node with a free device', () => {
    const slices = [aSlice('node-1', gpus(1), { nodeName: 'node-1' })]
    const claimed = { ...each(1), slices }
    const result = decided(claimed, { nodes: [node] })
    assert.deepEqual(Object.values(placedOn(result)), ['node-1'])
  })

  test('BUF-46 a node that starts has the devices of its type, never those it has published', () => {
    const starting = { ...node, initialized: false }
    const slices = [aSlice('node-1', gpus(3), { nodeName: 'node-1' })]
    const result = decided(
      { ...each(2), slices },
      { nodes: [starting], pools: [aPoolInput(aPool(), [oneGpu])] },
    )
    assert.equal(result.placements.length, 1)
    assert.equal(result.claims.length, 1)
  })

  test('a second pass keeps the pods on nodes that start, and launches nothing', () => {
    const nodes = ['node-1', 'node-2'].map((name) => ({ ...node, name, initialized: false }))
    const result = decided(each(2), { nodes })
    assert.deepEqual([result.placements.length, result.claims.length], [2, 0])
  })

  test('BUF-48 a device of a node is of no use to another node', () => {
    const slices = [aSlice('other', gpus(1), { nodeName: 'other' })]
    const result = decided({ ...each(1), slices }, { nodes: [node], pools: [] })
    assert.equal(result.failures.length, 1)
  })

  test('BUF-53 what a claim has in the cluster is not given twice', () => {
    const slices = [aSlice('node-1', gpus(1), { nodeName: 'node-1' })]
    const allocations = [anAllocation('other', ['uid-other'], { pool: 'node-1', device: 'gpu-0' })]
    const result = decided({ ...each(1), slices, allocations }, { nodes: [node], pools: [] })
    assert.equal(result.failures.length, 1)
  })

  test('BUF-51 what only leaving pods have is free', () => {
    const slices = [aSlice('node-1', gpus(1), { nodeName: 'node-1' })]
    const allocations = [anAllocation('other', ['uid-a'], { pool: 'node-1', device: 'gpu-0' })]
    const claimed = { ...each(1), slices, allocations }
    const left = decided({ ...claimed, leaving: ['uid-a'] }, { nodes: [node], pools: [] })
    assert.equal(left.placements.length, 1)
    const kept = decided(claimed, { nodes: [node], pools: [] })
    assert.equal(kept.placements.length, 0)
  })

  test('BUF-120 a device that a leaving pod and something else than a pod have is not free', () => {
    const slices = [
      aSlice(
        'node-1',
        [aDevice('gpu-0', {}, { allowMultipleAllocations: true, capacity: { memory: { value: '8Gi' } } })],
        { nodeName: 'node-1' },
      ),
    ]
    const memory = { consumedCapacity: { memory: '5Gi' }, pool: 'node-1', device: 'gpu-0' }
    const allocations = [anAllocation('a', ['uid-a'], memory), anAllocation('b', undefined, memory)]
    const claimed = { ...each(1), slices, allocations, leaving: ['uid-a'] }
    assert.equal(decided(claimed, { nodes: [node], pools: [] }).placements.length, 0)
  })

  test('BUF-52 a claim that a live pod or no pod has, too, stays where it is', () => {
    const status = (zone: string): ResourceClaim['status'] => ({
      allocation: { nodeSelector: inZone(zone).nodeSelector ?? { nodeSelectorTerms: [] } },
    })
    for (const pods of [['uid-a', 'uid-live'], undefined]) {
      const claimed = {
        ...each(1, aClaim({ requests: [exactly('gpu')] }, status('zone-2'))),
        allocations: [anAllocation('claim-0', pods, { pool: 'p', device: 'd' })],
        leaving: ['uid-a'],
      }
      const zones = ['zone-1', 'zone-2']
      const result = decided(claimed, { pools: [aPoolInput(aPool(), [aDeviceType('plain', 2, [], zones)])] })
      assert.deepEqual(result.claims[0]?.requirements.find(({ key }) => key === labels.zone)?.values, [
        'zone-2',
      ])
    }
  })

  test('a claim that is allocated on a node by name suits that node alone', () => {
    const fields = [{ key: 'metadata.name', operator: 'In' as const, values: ['node-1'] }]
    const status = { allocation: { nodeSelector: { nodeSelectorTerms: [{ matchFields: fields }] } } }
    const claimed = {
      ...each(1, aClaim({ requests: [exactly('gpu')] }, status)),
      allocations: [anAllocation('claim-0', [], { pool: 'node-1', device: 'gpu-0' })],
    }
    assert.equal(decided(claimed, { nodes: [node] }).placements.length, 1)
    const elsewhere = decided(claimed, { nodes: [{ ...node, name: 'node-2' }] })
    assert.match(whys(elsewhere)[0] ?? '', /which suit the pod do not reach/)
  })

  test('BUF-121 leaving pods that share a claim follow it together', () => {
    const [a, b] = [aClaimingPod(), aClaimingPod()]
    const uids = [a, b].map(({ metadata }) => metadata.uid ?? '')
    const result = decided(
      {
        pods: [
          [a, 'one'],
          [b, 'one'],
        ],
        claims: { one: aClaim() },
        slices: [aSlice('node-1', gpus(1), { nodeName: 'node-1' })],
        allocations: [anAllocation('one', uids, { pool: 'gone', device: 'gpu-0' })],
        leaving: uids,
      },
      { nodes: [node], pools: [] },
    )
    assert.deepEqual(
      result.placements.map((placement) => placement.node),
      ['node-1', 'node-1'],
    )
  })

  test('BUF-84 what a leaving pod takes of a shared device is free', () => {
    const slices = [
      aSlice(
        'node-1',
        [aDevice('gpu-0', {}, { allowMultipleAllocations: true, capacity: { memory: { value: '16Gi' } } })],
        { nodeName: 'node-1' },
      ),
    ]
    const part = (memory: string) => ({ pool: 'node-1', device: 'gpu-0', consumedCapacity: { memory } })
    const allocations = [
      anAllocation('a', ['uid-a'], part('10Gi')),
      anAllocation('b', ['uid-b'], part('4Gi')),
    ]
    const asking = (memory: string) =>
      decided(
        {
          ...each(1, aClaim({ requests: [exactly('gpu', { capacity: { requests: { memory } } })] })),
          slices,
          allocations,
          leaving: ['uid-a'],
        },
        { nodes: [node], pools: [] },
      ).placements.length
    assert.deepEqual([asking('12Gi'), asking('13Gi')], [1, 0])
  })

  test('BUF-70 only the first of two claims gets a device that both could reach', () => {
    const slices = [aSlice('shared', gpus(1), { allNodes: true })]
    const result = decided({ ...each(2), slices }, { pools: [aPoolInput(aPool(), [noGpu])] })
    assert.deepEqual([result.claims.length, result.failures.length], [1, 1])
    assert.equal(Object.keys(failureTexts(result)).length, 1)
  })
})

describe('the price of a plan', () => {
  test('a cheaper plan leaves claims with devices as they are', () => {
    const result = decided(each(3), {
      pools: [aPoolInput(aPool(), [oneGpu, twoGpus])],
      policy: { ...aDeviceInput(each(0)).policy, improvement: 'planned' },
    })
    assert.deepEqual(result.failures, [])
    assert.equal(result.claims.flatMap(({ pods }) => pods).length, 3)
  })
})

test('VER-49 a field of a constraint or a selector that is not known keeps nodes from being launched, and is named', () => {
  const unknown = { derivedAttribute: 'example.com/rack' } as object
  const selector = { cel: { expression: 'true' }, wasm: 'AGFzbQ==' }
  const claims: readonly (readonly [RegExp, ReturnType<typeof aClaim>])[] = [
    [/does not know field derivedAttribute of a constraint/, aClaim({ constraints: [unknown] })],
    [
      /does not know field wasm of a selector of request gpu/,
      aClaim({ requests: [exactly('gpu', { selectors: [selector] })] }),
    ],
  ]
  for (const [told, claim] of claims) {
    const result = decided({ ...each(1), claims: { 'claim-0': claim } })
    assert.deepEqual(typesOf(result), [])
    assert.match(whys(result)[0] ?? '', told)
  }
})

describe('rules that taint devices', () => {
  const published = { ...each(1), slices: [aSlice('node-a', gpus(1), { nodeName: 'node-a' })] }
  const node = aNode('node-a')
  const placed = (taintRules: readonly DeviceTaintRule[], claim = aClaim()) => {
    const pods: ClaimedPods = { ...published, claims: { 'claim-0': claim }, taintRules }
    const result = decided(pods, { nodes: [node] })
    return result.claims.length === 0 ? Object.values(placedOn(result))[0] : typesOf(result)[0]
  }

  test('VER-48 a published device that a rule selects is not given, and a new node is, unless the rule is for all pools', () => {
    assert.equal(placed([]), 'node-a')
    const elsewhere = ['one-gpu', 'two-gpus']
    assert.deepEqual(placed([aTaintRule({ driver, pool: 'node-a', device: 'gpu-0' })]), elsewhere)
    assert.deepEqual(placed([aTaintRule({ pool: 'node-a' })]), elsewhere)
    assert.equal(placed([aTaintRule({ pool: 'node-b' })]), 'node-a')
    assert.equal(placed([aTaintRule({ driver: 'other.example.com' })]), 'node-a')
    assert.equal(placed([aTaintRule(undefined)]), 'node-a')
    assert.equal(placed([aTaintRule({}, { effect: 'None' })]), 'node-a')
  })

  test('VER-48 no node is launched for devices that a rule will taint as soon as they are published', () => {
    for (const rule of [aTaintRule({}), aTaintRule({ driver }, { effect: 'NoExecute' })]) {
      const result = decided({ ...each(1), taintRules: [rule] })
      assert.deepEqual(typesOf(result), [])
      assert.match(
        whys(result)[0] ?? '',
        /request gpu: all devices that it selects have taints \(broken:No(Schedule|Execute)\)/,
      )
    }
    const named = decided({ ...each(1), taintRules: [aTaintRule({ driver, device: 'gpu-0' })] })
    assert.deepEqual(typesOf(named), [['two-gpus']])
  })

  test('a claim that tolerates the taint gets the device', () => {
    const tolerating = (toleration: DeviceToleration) =>
      placed(
        [aTaintRule({}, { value: 'fan' })],
        aClaim({ requests: [exactly('gpu', { tolerations: [toleration] })] }),
      )
    assert.equal(tolerating({ key: 'broken', operator: 'Exists' }), 'node-a')
    assert.equal(tolerating({ operator: 'Exists' }), 'node-a')
    assert.equal(
      tolerating({ key: 'broken', operator: 'Equal', value: 'fan', effect: 'NoSchedule' }),
      'node-a',
    )
    // Without a key all keys are meant, also of one value.
    assert.equal(tolerating({ operator: 'Equal', value: 'fan' }), 'node-a')
    assert.notEqual(tolerating({ key: 'broken', operator: 'Equal', value: 'heat' }), 'node-a')
    assert.notEqual(tolerating({ key: 'broken', operator: 'Exists', effect: 'NoExecute' }), 'node-a')
  })
})

describe('what is missing for a claim', () => {
  const model = (name: string) => cel(`device.attributes['${driver}'].model == '${name}'`)
  const a100 = (name: string, more: Partial<Device> = {}) =>
    aDevice(name, { model: { string: 'a100' } }, { capacity: { memory: { value: '40Gi' } }, ...more })
  const twoA100 = aDeviceType('two-a100', 8, [a100('0'), a100('1')])
  const why = (
    request: DeviceRequest,
    {
      types = [noGpu, twoA100],
      ...more
    }: Partial<ClaimedPods> & { readonly types?: readonly InstanceType[] } = {},
    pod: Partial<SchedulingInput> = {},
  ) =>
    whys(
      decided(
        { ...each(1, aClaim({ requests: [request] })), ...more },
        { pools: [aPoolInput(aPool(), types)], ...pod },
      ),
    )[0] ?? ''

  test('the request, the class or the selector that nothing meets, and what to do', () => {
    assert.match(
      why(exactly('training', model('b200'))),
      /^ResourceClaim default\/claim-0: request training: no free or buyable device of DeviceClass gpu meets its selector device\.attributes.*'b200'; loosen the selector/,
    )
    const two = { selectors: [...(model('a100').selectors ?? []), ...(model('b200').selectors ?? [])] }
    const text = why(exactly('training', two))
    assert.match(text, /meets its selector device\.attributes\['[^']*'\]\.model == 'b200';/)
    assert.doesNotMatch(text, /a100/)
    assert.match(
      why(exactly('training', cel(`device.attributes['${driver}'].missing == 1`))),
      /cannot be evaluated: .*missing/,
    )
  })

  test('amounts, numbers and taints that devices do not have', () => {
    const memory = (amount: string) => ({ capacity: { requests: { memory: amount } } })
    assert.match(
      why(exactly('training', memory('80Gi'))),
      /request training: it asks for 80Gi of capacity memory, .* \(they have 40Gi at most\); ask for less/,
    )
    assert.match(
      why(exactly('training', { capacity: { requests: { cores: '1' } } })),
      /it asks for capacity cores, which no device that it selects has/,
    )
    assert.match(
      why(exactly('training', { count: 3 })),
      /it asks for 3 devices of one node, and no node has more than 2 such; ask for fewer/,
    )
    const sick = aDeviceType('sick', 8, [
      a100('0', { taints: [{ key: 'heat', value: 'high', effect: 'NoExecute' }] }),
    ])
    assert.match(
      why(exactly('training'), { types: [sick] }),
      /all devices that it selects have taints \(heat=high:NoExecute\); tolerate the taints in the request/,
    )
  })

  test('of alternatives each has its reason; one that could be met is none', () => {
    const request = (...names: readonly string[]): DeviceRequest => ({
      name: 'training',
      firstAvailable: names.map((name) => ({ name, deviceClassName: 'gpu', ...model(name) })),
    })
    assert.match(
      why(request('b200', 'h200')),
      /request training\/b200: no free .*; request training\/h200: no free .*; loosen the selector/,
    )
    const slices = [aSlice('node-a', [a100('0')], { nodeName: 'node-a' })]
    const allocations = [anAllocation('other', ['pod-x'], { device: '0', pool: 'node-a' })]
    assert.match(
      why(request('b200', 'a100'), { types: [noGpu], slices, allocations }),
      /no node, .* has free devices for all of its requests together, although some have such devices/,
    )
  })

  test('types with the devices that do not suit the pod otherwise are named', () => {
    const pod = aPod({ cpu: '100' }, { resourceClaims: [{ name: 'devices', resourceClaimName: 'any' }] })
    const big = aDeviceType('big', 200, [])
    assert.match(
      why(exactly('training'), { types: [big, twoA100], pods: [[pod, 'claim-0']] }),
      /request training: only instance types that do not suit the pod otherwise have its devices \(two-a100\); widen/,
    )
  })

  test('a pool that is not whole keeps a claim of all devices waiting', () => {
    const slices = [
      aSlice('shared', [a100('0')], {
        allNodes: true,
        pool: { name: 'shared', generation: 1, resourceSliceCount: 2 },
      }),
    ]
    const text = why(exactly('training', { allocationMode: 'All' }), { slices })
    assert.match(
      text,
      /it asks for all devices, and pool shared of driver .* is not published completely yet/,
    )
  })
})
