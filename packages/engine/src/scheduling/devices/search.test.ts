/** Which devices one node gives to claims, and which it does not (devices.md 3.9 to 3.14). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Device, DeviceClaim, DeviceClass, InstanceType, ResourceSlice } from '@tenon/api'
import {
  aClaim,
  aClaimingPod,
  aDevice,
  aDeviceType,
  aSlice,
  cel,
  devicesInput,
  driver,
  exactly,
  gpuClass,
  gpus,
} from '../../testing/device-builders.test-support.ts'
import { aType } from '../../testing/builders.test-support.ts'
import { CompiledDevices } from './device-allocator.ts'
import { DeviceAllocator } from './device-allocator.ts'

interface Place {
  readonly slices?: readonly ResourceSlice[]
  readonly types?: readonly InstanceType[]
  readonly classes?: readonly DeviceClass[]
}

const local = { nodeName: 'node-1' }

/** A node, or a claim of several types, that is asked for one claim after the other. */
class Taking {
  readonly #room: DeviceAllocator
  readonly #devices: CompiledDevices
  readonly #types: readonly InstanceType[]
  readonly #takers = new Map<string, object>()

  constructor(
    claims: Readonly<Record<string, DeviceClaim>>,
    { slices = [], types = [], classes = [gpuClass] }: Place,
  ) {
    const pod = aClaimingPod()
    const named = Object.fromEntries(Object.entries(claims).map(([name, claim]) => [name, aClaim(claim)]))
    this.#devices = new CompiledDevices(
      devicesInput({ pods: [[pod, ...Object.keys(claims)]], claims: named, slices, classes }),
    )
    this.#room = new DeviceAllocator(this.#devices)
    this.#types = types
  }

  /** Devices (`request=device`) per type that has them; the reason when none has. */
  take(claims: readonly string[], { by = 'node-1', keep = true } = {}): readonly string[] | string {
    const isNew = this.#types.length > 0
    const consumer = this.#takers.get(by) ?? {}
    this.#takers.set(by, consumer)
    const types = isNew ? this.#types.map((type) => this.#devices.ofType(type)) : [this.#devices.none]
    this.#room.restart()
    const offer = this.#room.offer(
      claims.map((name) => `default/${name}`),
      {
        consumer,
        nodeName: isNew ? undefined : by,
        isStarting: isNew,
        mayBeUndefined: new Set(),
        requirements: new Map(),
        types,
      },
    )
    if ('kind' in offer) return offer.because.kind === 'problem' ? offer.because.problem : offer.because.kind
    if (keep) this.#room.take(offer, offer.types)
    return this.#types.length > 0
      ? this.#types.flatMap((type) => {
          const found = offer.solutions.get(this.#devices.ofType(type))
          return found === undefined ? [] : [`${type.name}: ${namesOf(found.holds)}`]
        })
      : [...offer.solutions.values()].map(({ holds }) => namesOf(holds))
  }

  retain(by: string, ...names: readonly string[]): void {
    const kept = this.#types.filter(({ name }) => names.includes(name))
    this.#room.retain(this.#takers.get(by) ?? {}, new Set(kept.map((type) => this.#devices.ofType(type))))
  }
}

function namesOf(
  holds: readonly { readonly request: string; readonly device: { readonly name: string } }[],
): string {
  return holds.map(({ request, device }) => `${request}=${device.name}`).join(' ')
}

/** What a node with these devices gives to one claim. */
function given(claim: DeviceClaim, devices: readonly Device[], place: Partial<Place> = {}) {
  return new Taking({ one: claim }, { slices: [aSlice('node-1', devices, local)], ...place }).take(['one'])
}

const all = (name: string) => exactly(name, { allocationMode: 'All' })
const model = (name: string, value: string) => aDevice(name, { model: { string: value } })

describe('pools', () => {
  const wanted = { requests: [exactly('gpu')] }

  test('BUF-54 a pool that is not complete gives nothing, and all of it cannot be told', () => {
    const slices = [aSlice('node-1', gpus(2), local, 2, 2)]
    assert.equal(given(wanted, [], { slices }), 'noDevices')
    assert.equal(given({ requests: [all('gpu')] }, [], { slices }), 'noDevices')
    const beside = [...slices, aSlice('other', gpus(1), local)]
    assert.deepEqual(given(wanted, [], { slices: beside }), ['gpu=gpu-0'])
    assert.equal(given({ requests: [all('gpu')] }, [], { slices: beside }), 'noDevices')
  })

  test('BUF-55 slices of an older generation do not count even when they are whole', () => {
    const slices = [
      aSlice('node-1', [aDevice('old')], local, 1),
      aSlice('node-1', [aDevice('new')], local, 2),
    ]
    assert.deepEqual(given(wanted, [], { slices }), ['gpu=new'])
    const newer = [
      aSlice('node-1', [aDevice('old')], local, 1),
      aSlice('node-1', [aDevice('new')], local, 2, 2),
    ]
    assert.equal(given(wanted, [], { slices: newer }), 'noDevices')
  })

  test('BUF-56 a pool with a name twice gives nothing', () => {
    const slices = [aSlice('node-1', [...gpus(1), ...gpus(1)], local)]
    assert.equal(given(wanted, [], { slices }), 'noDevices')
    assert.equal(given({ requests: [all('gpu')] }, [], { slices }), 'noDevices')
  })

  test('BUF-57 slices that the node does not reach count for a pool to be complete', () => {
    const slices = [
      aSlice('shared', [aDevice('here')], local, 1, 2),
      aSlice('shared', [aDevice('there')], { nodeName: 'node-2' }, 1, 2),
    ]
    assert.deepEqual(given({ requests: [all('gpu')] }, [], { slices }), ['gpu=here'])
  })

  test('devices of a slice may each say where they are', () => {
    const devices = [
      aDevice('there', {}, { nodeName: 'node-2' }),
      aDevice('anywhere', {}, { allNodes: true }),
    ]
    const slices = [aSlice('mixed', devices, { perDeviceNodeSelection: true })]
    assert.deepEqual(given({ requests: [all('gpu')] }, [], { slices }), ['gpu=anywhere'])
  })
})

describe('requests', () => {
  test('BUF-58 all devices are not there while one is taken', () => {
    const taking = new Taking(
      { one: { requests: [exactly('gpu')] }, rest: { requests: [all('gpu')] } },
      { slices: [aSlice('node-1', gpus(3), local)] },
    )
    assert.deepEqual(taking.take(['one']), ['gpu=gpu-0'])
    assert.equal(taking.take(['rest']), 'noDevices')
  })

  test('BUF-59 all of none is not met; all and a number share the value of a constraint', () => {
    assert.equal(given({ requests: [all('gpu')] }, []), 'noDevices')
    const claim = {
      requests: [
        {
          name: 'a',
          exactly: {
            deviceClassName: 'gpu',
            allocationMode: 'All' as const,
            ...cel(`device.attributes['${driver}'].kind == 'a'`),
          },
        },
        exactly('b', cel(`device.attributes['${driver}'].kind == 'b'`)),
      ],
      constraints: [{ matchAttribute: `${driver}/root` }],
    }
    const device = (name: string, kind: string, root: string) =>
      aDevice(name, { kind: { string: kind }, root: { string: root } })
    const devices = [device('a-1', 'a', 'x'), device('b-1', 'b', 'y'), device('b-2', 'b', 'x')]
    assert.deepEqual(given(claim, devices), ['a=a-1 b=b-2'])
    assert.equal(given(claim, devices.slice(0, 2)), 'noDevices')
  })

  test('BUF-60 a claim may have 32 devices and no more', () => {
    assert.match(
      String(given({ requests: [exactly('gpu', { count: 33 })] }, gpus(40))),
      /asks for 33 devices/,
    )
    assert.equal(Array.isArray(given({ requests: [exactly('gpu', { count: 32 })] }, gpus(40))), true)
    assert.equal(given({ requests: [all('gpu')] }, gpus(33)), 'noDevices')
  })

  test('BUF-61 of types that have too many devices in all only those are left out', () => {
    const types = [aDeviceType('many', 4, gpus(33)), aDeviceType('few', 4, gpus(2))]
    const taking = new Taking({ one: { requests: [all('gpu')] } }, { types })
    assert.deepEqual(taking.take(['one'], { keep: false }), ['few: gpu=gpu-0 gpu=gpu-1'])
    const none = new Taking({ one: { requests: [all('gpu')] } }, { types: types.slice(0, 1) })
    assert.equal(none.take(['one']), 'noDevices')
  })

  test('BUF-67 the second alternative wins when the first does not fit, and is told by name', () => {
    const claim = {
      requests: [
        {
          name: 'req',
          firstAvailable: [
            { name: 'two', deviceClassName: 'gpu', count: 2 },
            { name: 'one', deviceClassName: 'gpu' },
          ],
        },
      ],
    }
    assert.deepEqual(given(claim, gpus(1)), ['req/one=gpu-0'])
    assert.deepEqual(given(claim, gpus(2)), ['req/two=gpu-0 req/two=gpu-1'])
    assert.equal(given(claim, []), 'noDevices')
  })

  test('a selector whose evaluation fails means another device, and no answer for all of them', () => {
    const selective = cel(`device.attributes['${driver}'].model == 'a'`)
    const devices = [aDevice('plain'), model('named', 'a')]
    assert.deepEqual(given({ requests: [exactly('gpu', selective)] }, devices), ['gpu=named'])
    assert.equal(
      given({ requests: [exactly('gpu', { ...selective, allocationMode: 'All' })] }, devices),
      'noDevices',
    )
    assert.match(String(given({ requests: [exactly('gpu', cel('device.'))] }, devices)), /does not compile/)
    assert.match(String(given({ requests: [exactly('gpu', cel('device.driver'))] }, devices)), /./)
  })

  test('quantities, versions, lists and absent domains are what selectors expect', () => {
    const device = aDevice(
      'd',
      { 'example.com/v': { version: '1.10.0' }, n: { int: 3 }, s: { strings: ['x', 'y'] } },
      {
        capacity: { memory: { value: '40Gi' } },
      },
    )
    for (const expression of [
      `device.capacity['${driver}'].memory.compareTo(quantity('32Gi')) > 0`,
      `device.attributes['example.com'].v.isGreaterThan(semver('1.9.0'))`,
      `device.attributes['${driver}'].n == 3`,
      `'y' in device.attributes['${driver}'].s`,
      `!has(device.attributes['other.com'].x)`,
      `!('other.com' in device.attributes)`,
      `!device.allowMultipleAllocations`,
    ])
      assert.deepEqual(
        given({ requests: [exactly('gpu', cel(expression))] }, [device]),
        ['gpu=d'],
        expression,
      )
  })

  test('a tainted device is for those that tolerate it', () => {
    const tainted = aDevice('sick', {}, { taints: [{ key: 'health', value: 'bad', effect: 'NoSchedule' }] })
    assert.equal(given({ requests: [exactly('gpu')] }, [tainted]), 'noDevices')
    const tolerating = { tolerations: [{ key: 'health', operator: 'Exists' as const }] }
    assert.deepEqual(given({ requests: [exactly('gpu', tolerating)] }, [tainted]), ['gpu=sick'])
    const informing = aDevice('told', {}, { taints: [{ key: 'health', effect: 'None' }] })
    assert.deepEqual(given({ requests: [exactly('gpu')] }, [informing]), ['gpu=told'])
  })

  test('access for administration takes a device that is in use, and leaves it to others', () => {
    const admin = { requests: [exactly('gpu', { adminAccess: true })] }
    const taking = new Taking(
      { one: { requests: [exactly('gpu')] }, admin, two: { requests: [exactly('gpu')] } },
      { slices: [aSlice('node-1', gpus(1), local)] },
    )
    assert.deepEqual(taking.take(['admin']), ['gpu=gpu-0'])
    assert.deepEqual(taking.take(['one']), ['gpu=gpu-0'])
    assert.equal(taking.take(['two']), 'noDevices')
  })
})

describe('constraints', () => {
  const two = (...constraints: NonNullable<DeviceClaim['constraints']>): DeviceClaim => ({
    requests: [exactly('a'), exactly('b')],
    constraints,
  })

  test('BUF-62 devices with equal values are found, past a first choice that has none', () => {
    const devices = [model('x', '1'), model('y', '2'), model('z', '2')]
    assert.deepEqual(given(two({ matchAttribute: `${driver}/model` }), devices), ['a=y b=z'])
    const types = [aDevice('i', { model: { int: 1 } }), aDevice('s', { model: { string: '1' } })]
    assert.equal(given(two({ matchAttribute: `${driver}/model` }), types), 'noDevices')
  })

  test('BUF-63 BUF-64 values that are not known yet are shared by devices that are bound', () => {
    const bound = (...groups: readonly (readonly string[])[]): InstanceType => ({
      ...aDeviceType(
        'bound',
        4,
        ['a', 'b', 'c', 'd'].map((name) => aDevice(name)),
      ),
      attributeBindings: groups.map((names) => ({
        attribute: 'example.com/root',
        devices: names.map((device) => ({ driver, pool: 'node', device })),
      })),
    })
    const claim = {
      requests: [exactly('a', { count: 3 })],
      constraints: [{ matchAttribute: 'example.com/root' }],
    }
    const take = (type: InstanceType, sought: DeviceClaim = claim) =>
      new Taking({ one: sought }, { types: [type] }).take(['one'])
    assert.deepEqual(take(bound(['a', 'b'], ['b', 'c'])), ['bound: a=a a=b a=c'])
    assert.equal(take(bound(['a', 'b'])), 'noDevices')
    assert.equal(take(bound(['a'], ['b'], ['c'])), 'noDevices')
    const other = { ...claim, constraints: [{ matchAttribute: 'example.com/other' }] }
    assert.equal(take(bound(['a', 'b', 'c']), other), 'noDevices')
    const mixed = {
      ...bound(['b', 'c']),
      ...aDeviceType('mixed', 4, [aDevice('a', { 'example.com/root': { int: 1 } }), aDevice('b')]),
    }
    assert.equal(take(mixed, two({ matchAttribute: 'example.com/root' })), 'noDevices')
  })

  test('BUF-65 an attribute is found under the domain of its driver and without it', () => {
    const devices = [aDevice('x', { [`${driver}/model`]: { string: 'm' } }), model('y', 'm')]
    assert.deepEqual(given(two({ matchAttribute: `${driver}/model` }), devices), ['a=x b=y'])
  })

  test('BUF-66 a constraint on a part of a request leaves the others alone', () => {
    const claim = (requests: readonly string[]): DeviceClaim => ({
      requests: [
        { name: 'req', firstAvailable: [{ name: 'sub', deviceClassName: 'gpu' }] },
        exactly('b'),
        exactly('c'),
      ],
      constraints: [{ matchAttribute: `${driver}/model`, requests }],
    })
    const devices = [model('x', '1'), model('y', '2'), model('z', '1')]
    assert.deepEqual(given(claim(['req/sub', 'c']), devices), ['req/sub=x b=y c=z'])
    assert.deepEqual(given(claim(['req', 'b']), devices), ['req/sub=x b=z c=y'])
  })

  test('devices that must differ do, and lists match where they have a value in common', () => {
    const devices = [model('x', '1'), model('y', '1'), model('z', '2')]
    assert.deepEqual(given(two({ distinctAttribute: `${driver}/model` }), devices), ['a=x b=z'])
    const listed = (name: string, ...strings: readonly string[]) => aDevice(name, { root: { strings } })
    const lists = [listed('x', 'p', 'q'), listed('y', 'r'), listed('z', 'q', 'r')]
    assert.deepEqual(given(two({ matchAttribute: `${driver}/root` }), lists), ['a=x b=z'])
  })
})

describe('counters', () => {
  const consuming =
    (memory: string, more: Partial<Device> = {}) =>
    (name: string) =>
      aDevice(
        name,
        {},
        { consumesCounters: [{ counterSet: 'gpu', counters: { memory: { value: memory } } }], ...more },
      )
  const counters = (memory: string) => [{ name: 'gpu', counters: { memory: { value: memory } } }]
  const claims = {
    a: { requests: [exactly('x')] },
    b: { requests: [exactly('x')] },
    c: { requests: [exactly('x')] },
  }
  const published = (devices: readonly Device[], memory: string) => [
    aSlice('node-1', devices, local, 0, 2),
    aSlice('node-1', [], { ...local, sharedCounters: counters(memory) }, 0, 2),
  ]

  test('BUF-74 profiles of 40Gi fit twice into 80Gi', () => {
    const taking = new Taking(claims, { slices: published(['p', 'q', 'r'].map(consuming('40Gi')), '80Gi') })
    assert.deepEqual(
      ['a', 'b', 'c'].map((name) => taking.take([name])),
      [['x=p'], ['x=q'], 'noDevices'],
    )
  })

  test('BUF-74 BUF-78 so they do on a node that is to come, whatever a pool of that name has', () => {
    const template = {
      ...aType('partitioned', 4, 16),
      resourceSliceTemplates: [
        {
          driver,
          pool: 'node-1',
          devices: ['p', 'q', 'r'].map(consuming('40Gi')),
          sharedCounters: counters('80Gi'),
        },
      ],
    }
    const taking = new Taking(claims, { types: [template], slices: published([], '0') })
    const found = ['a', 'b', 'c'].map((name) => taking.take([name], { by: 'claim-1' }))
    assert.deepEqual(found, [['partitioned: x=p'], ['partitioned: x=q'], 'noDevices'])
    assert.deepEqual(new Taking(claims, { types: [template] }).take(['c'], { by: 'claim-2' }), [
      'partitioned: x=p',
    ])
  })

  test('BUF-75 the tighter of two counters decides, and nothing of nothing is no obstacle', () => {
    const device = (name: string) =>
      aDevice(
        name,
        {},
        {
          consumesCounters: [
            {
              counterSet: 'gpu',
              counters: { memory: { value: '10Gi' }, cores: { value: '2' }, none: { value: '0' } },
            },
          ],
        },
      )
    const sharedCounters = [
      { name: 'gpu', counters: { memory: { value: '80Gi' }, cores: { value: '3' }, none: { value: '0' } } },
    ]
    const slices = [
      aSlice('node-1', ['p', 'q'].map(device), local, 0, 2),
      aSlice('node-1', [], { ...local, sharedCounters }, 0, 2),
    ]
    const taking = new Taking(claims, { slices })
    assert.deepEqual([taking.take(['a']), taking.take(['b'])], [['x=p'], 'noDevices'])
  })

  test('BUF-76 BUF-77 of types that a claim may become the heaviest counts, until it is given up', () => {
    const wide = cel(`device.attributes['${driver}'].kind == 'wide'`)
    const narrow = cel(`device.attributes['${driver}'].kind == 'narrow'`)
    const kind = (name: string, memory: string, value: string) => ({
      ...consuming(memory)(name),
      attributes: { kind: { string: value } },
    })
    const shared = [
      aSlice(
        'net',
        [kind('w', '60Gi', 'wide'), kind('n', '20Gi', 'narrow'), kind('m', '60Gi', 'wide')],
        { allNodes: true },
        0,
        2,
      ),
      aSlice('net', [], { allNodes: true, sharedCounters: counters('80Gi') }, 0, 2),
    ]
    const local1 = aDeviceType('with', 4, [aDevice('own', { kind: { string: 'own' } })])
    const types = [local1, aType('without', 4, 16)]
    const own = cel(`device.attributes['${driver}'].kind == 'own'`)
    const either = {
      requests: [
        {
          name: 'x',
          firstAvailable: [
            { name: 'own', deviceClassName: 'gpu', ...own },
            { name: 'wide', deviceClassName: 'gpu', ...wide },
          ],
        },
      ],
    }
    const taking = new Taking(
      { a: either, b: { requests: [exactly('x', wide)] }, c: { requests: [exactly('x', narrow)] } },
      { types, slices: shared },
    )
    assert.deepEqual(taking.take(['a'], { by: 'first' }), ['with: x/own=own', 'without: x/wide=w'])
    assert.equal(taking.take(['b'], { by: 'second', keep: false }), 'noDevices')
    assert.equal(Array.isArray(taking.take(['c'], { by: 'second', keep: false })), true)
    taking.retain('first', 'with')
    assert.deepEqual(taking.take(['b'], { by: 'second' }), ['with: x=w', 'without: x=w'])
  })

  test('BUF-126 a device that two claims share takes its counters once', () => {
    const device = consuming('40Gi', { allowMultipleAllocations: true, capacity: { slots: { value: '4' } } })(
      'p',
    )
    const one = { requests: [exactly('x', { capacity: { requests: { slots: '1' } } })] }
    const taking = new Taking({ a: one, b: one }, { slices: published([device], '40Gi') })
    assert.deepEqual([taking.take(['a']), taking.take(['b'])], [['x=p'], ['x=p']])
  })
})

describe('capacity', () => {
  const asking = (memory: string | undefined): DeviceClaim => ({
    requests: [exactly('x', memory === undefined ? {} : { capacity: { requests: { memory } } })],
  })
  const shared = (capacity: NonNullable<Device['capacity']>) =>
    aDevice('s', {}, { allowMultipleAllocations: true, capacity })
  /** How many of the requests one device takes. */
  const taken = (device: Device, ...requests: readonly (string | undefined)[]) => {
    const claims = Object.fromEntries(requests.map((memory, index) => [`c-${index}`, asking(memory)]))
    const taking = new Taking(claims, { slices: [aSlice('node-1', [device], local)] })
    return Object.keys(claims).map((name) => Array.isArray(taking.take([name])))
  }

  test('BUF-79 BUF-85 requests share a device up to its capacity exactly', () => {
    assert.deepEqual(taken(shared({ memory: { value: '16Gi' } }), '4Gi', '6Gi', '6Gi', '1'), [
      true,
      true,
      true,
      false,
    ])
    assert.deepEqual(taken(shared({ memory: { value: '16Gi' } }), '10Gi', '10Gi'), [true, false])
  })

  test('BUF-80 without a request the default is taken, or the whole device', () => {
    const policy = { default: '4Gi', validRange: { min: '1Gi' } }
    assert.deepEqual(
      taken(shared({ memory: { value: '8Gi', requestPolicy: policy } }), undefined, undefined, undefined),
      [true, true, false],
    )
    assert.deepEqual(taken(shared({ memory: { value: '8Gi' } }), undefined, undefined), [true, false])
  })

  test('BUF-81 a request becomes the next value that the policy has', () => {
    const requestPolicy = { default: '2', validValues: ['2', '4', '8'] }
    assert.deepEqual(taken(shared({ memory: { value: '8', requestPolicy } }), '3', '4', '2'), [
      true,
      true,
      false,
    ])
    assert.deepEqual(taken(shared({ memory: { value: '80', requestPolicy } }), '9'), [false])
  })

  test('BUF-82 a request is rounded up to a step of the range', () => {
    const requestPolicy = { default: '2', validRange: { min: '2', step: '2', max: '8' } }
    const device = (value: string) => shared({ memory: { value, requestPolicy } })
    assert.deepEqual(taken(device('8'), '3', '1', '3'), [true, true, false])
    assert.deepEqual(taken(device('80'), '9'), [false])
  })

  test('BUF-83 BUF-122 a device without the dimension, or with too little of it, is not chosen', () => {
    const plain = aDevice('s', {}, { capacity: { memory: { value: '8Gi' } } })
    assert.deepEqual(taken(plain, '16Gi'), [false])
    assert.deepEqual(taken(plain, '8Gi'), [true])
    assert.deepEqual(taken(aDevice('s'), '1'), [false])
  })
})

describe('reservations', () => {
  test('BUF-71 a device may be for several types of one claim, and for one pod each', () => {
    const types = [aDeviceType('a', 4, [aDevice('own-a')]), aType('b', 4, 16)]
    const shared = [aSlice('net', [aDevice('net-0')], { allNodes: true })]
    const taking = new Taking(
      { one: { requests: [exactly('x')] }, two: { requests: [exactly('x')] } },
      { types, slices: shared },
    )
    assert.deepEqual(taking.take(['one'], { by: 'claim' }), ['a: x=net-0', 'b: x=net-0'])
    assert.deepEqual(taking.take(['two'], { by: 'claim' }), ['a: x=own-a'])
  })

  test('BUF-72 an offer that is not taken reserves nothing', () => {
    const taking = new Taking(
      { one: { requests: [exactly('x')] }, two: { requests: [exactly('x')] } },
      { slices: [aSlice('node-1', gpus(1), local)] },
    )
    assert.deepEqual(taking.take(['one'], { keep: false }), ['x=gpu-0'])
    assert.deepEqual(taking.take(['two']), ['x=gpu-0'])
  })

  test('BUF-73 what a claim has as a type that it gives up is free again', () => {
    const types = [aDeviceType('a', 4, gpus(1)), aType('b', 4, 16)]
    const wanted = { requests: [exactly('x', { count: 1 }), exactly('y')] }
    const slices = [aSlice('net', [aDevice('net-0'), aDevice('net-1')], { allNodes: true })]
    const taking = new Taking({ one: wanted, two: wanted }, { types, slices })
    assert.deepEqual(taking.take(['one'], { by: 'first' }), ['a: x=net-0 y=net-1', 'b: x=net-0 y=net-1'])
    assert.equal(taking.take(['two'], { by: 'second', keep: false }), 'noDevices')
    taking.retain('first')
    assert.equal(Array.isArray(taking.take(['two'], { by: 'second' })), true)
  })

  test('BUF-124 a search that takes too long is given up', () => {
    const devices = Array.from({ length: 40 }, (_, index) =>
      aDevice(`d-${index}`, { n: { int: index }, m: { int: index % 3 } }),
    )
    const claim = {
      requests: Array.from({ length: 12 }, (_, index) => exactly(`r${index}`)),
      constraints: [{ matchAttribute: `${driver}/m` }, { distinctAttribute: `${driver}/n` }],
    }
    assert.equal(
      given({ ...claim, requests: [...claim.requests, exactly('more', { count: 3 })] }, devices),
      'tooManySteps',
    )
  })
})
