/** What kube-apiserver 1.36 refuses of these objects, by field; its answers were read from a dry run, and `npm run conformance -- defaulting` compares more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredObject } from '../../../contract.ts'
import { builtinDefinitions } from '../../builtin-definitions.ts'

type Kind = 'DeviceClass' | 'DeviceTaintRule' | 'ResourceClaim' | 'ResourceClaimTemplate' | 'ResourceSlice'

/** Kinds and fields of errors, as the API server finds them once it has set defaults. */
function refused(kind: Kind, spec: object, old?: object): readonly string[] {
  const definition = builtinDefinitions().find((each) => each.kind === kind)
  assert.ok(definition)
  const { group, version } = definition
  const objectOf = (given: object): StoredObject =>
    definition.applyDefaults({
      apiVersion: `${group}/${version}`,
      kind,
      metadata: { name: 'any', ...(definition.namespaced && { namespace: 'default' }) },
      spec: given,
    })
  const errors = definition.validate(objectOf(spec), old && objectOf(old))
  return errors.map((error) => `${error.kind} ${error.field}`)
}

const request = (name: string, more: object = {}) => ({ name, exactly: { deviceClassName: 'gpu', ...more } })

test('a claim with mistakes is refused with each field that is wrong', () => {
  const cel = (expression: string) => ({ cel: { expression } })
  const requests = [
    request('Bad_Name', {
      deviceClassName: 'GPU!',
      allocationMode: 'All',
      count: 2,
      selectors: [{}, cel(''), cel('device.drive == 1')],
      tolerations: [
        { operator: 'Exists', value: 'x' },
        { operator: 'Equal' },
        { operator: 'Foo', effect: 'Bar' },
      ],
    }),
    { name: 'a' },
    { ...request('a', { count: -1 }), firstAvailable: [{ name: 'b', deviceClassName: '' }] },
    request('c', { allocationMode: 'Some' }),
  ]
  const constraints = [
    { requests: ['zzz'], matchAttribute: 'nodomain' },
    { requests: ['a'] },
    { matchAttribute: 'a.b/x-y', distinctAttribute: 'a.b/y' },
  ]
  const at = (path: string) => [
    `invalid ${path}.requests[0].name`,
    `invalid ${path}.requests[0].exactly.deviceClassName`,
    `required ${path}.requests[0].exactly.selectors[0].cel`,
    `invalid ${path}.requests[0].exactly.selectors[1].cel.expression`,
    `invalid ${path}.requests[0].exactly.selectors[2].cel.expression`,
    `invalid ${path}.requests[0].exactly.count`,
    `invalid ${path}.requests[0].exactly.tolerations[0].value`,
    `notSupported ${path}.requests[0].exactly.tolerations[2].operator`,
    `notSupported ${path}.requests[0].exactly.tolerations[2].effect`,
    `required ${path}.requests[1]`,
    `invalid ${path}.requests[2]`,
    `notSupported ${path}.requests[3].exactly.allocationMode`,
    `duplicate ${path}.requests[2]`,
    `invalid ${path}.constraints[0].requests[0]`,
    `invalid ${path}.constraints[0].matchAttribute`,
    `required ${path}.constraints[1]`,
    `invalid ${path}.constraints[2].matchAttribute`,
  ]
  const claim = { devices: { requests, constraints } }
  assert.deepEqual(refused('ResourceClaim', claim), at('spec.devices'))
  assert.deepEqual(refused('ResourceClaimTemplate', { spec: claim }), at('spec.spec.devices'))
})

test('a claim and its template do not change', () => {
  const before = { devices: { requests: [request('a')] } }
  const after = { devices: { requests: [request('b')] } }
  assert.deepEqual(refused('ResourceClaim', after, before), ['invalid spec'])
  assert.deepEqual(refused('ResourceClaim', before, before), [])
  assert.deepEqual(refused('ResourceClaimTemplate', { spec: after }, { spec: before }), ['invalid spec'])
})

test('a class is refused for an expression that is none, or does not answer yes or no', () => {
  const selectors = ['1 + 1', 'device.driver ==', "device.driver == 'gpu.example.com'"].map((expression) => ({
    cel: { expression },
  }))
  assert.deepEqual(refused('DeviceClass', { selectors }), [
    'invalid spec.selectors[0].cel.expression',
    'invalid spec.selectors[1].cel.expression',
  ])
})

test('a slice is refused for where its devices are and for what they are', () => {
  const driver = 'gpu.example.com'
  const pool = { name: 'node-1/gpus', generation: 1, resourceSliceCount: 1 }
  const good = {
    driver,
    pool,
    nodeName: 'node-1',
    devices: [{ name: 'a', attributes: { index: { int: 1 } } }],
  }
  assert.deepEqual(refused('ResourceSlice', good), [])
  const term = (key: string) => ({ matchExpressions: [{ key, operator: 'Exists' }] })
  assert.deepEqual(
    refused('ResourceSlice', {
      driver,
      pool,
      nodeSelector: { nodeSelectorTerms: [term('a'), term('b')] },
      perDeviceNodeSelection: false,
      devices: [{ name: 'a', taints: [{ key: '', effect: 'X' }] }],
    }).toSorted((a, b) => (a < b ? -1 : 1)),
    [
      'invalid spec.devices[0].taints[0].key',
      'invalid spec.devices[0].taints[0].key',
      'invalid spec.nodeSelector.nodeSelectorTerms',
      'invalid spec.perDeviceNodeSelection',
      'notSupported spec.devices[0].taints[0].effect',
    ],
  )
  assert.deepEqual(
    refused('ResourceSlice', {
      driver: 'Bad_Driver',
      pool: { name: 'A', generation: -1, resourceSliceCount: 0 },
      devices: [
        { name: 'X_1', attributes: { 'a-b': { int: 1 }, none: {}, both: { int: 1, bool: true } } },
        { name: 'twice', attributes: { built: { version: '1.x' } } },
        { name: 'twice', capacity: { '1a': { value: '1' } } },
      ],
    }),
    [
      'invalid spec.driver',
      'invalid spec.pool.name',
      'invalid spec.pool.resourceSliceCount',
      'invalid spec.pool.generation',
      'required spec',
      'invalid spec.devices[0].name',
      'invalid spec.devices[0].attributes',
      'invalid spec.devices[0].attributes[none]',
      'invalid spec.devices[0].attributes[both]',
      'invalid spec.devices[1].attributes[built].version',
      'invalid spec.devices[2].capacity',
      'duplicate spec.devices[2]',
    ],
  )
  assert.deepEqual(refused('ResourceSlice', { ...good, allNodes: true }), ['invalid spec'])
  assert.deepEqual(refused('ResourceSlice', { ...good, nodeName: 'node-2' }, good), ['invalid spec.nodeName'])
})

const driver = 'gpu.example.com'
const onNode = { driver, pool: { name: 'a', generation: 1, resourceSliceCount: 1 }, nodeName: 'a' }

test('counters, shared capacity and conditions of devices are checked', () => {
  const counters = { memory: { value: '8' } }
  assert.deepEqual(
    refused('ResourceSlice', {
      ...onNode,
      sharedCounters: [
        { name: 'a', counters },
        { name: 'a', counters: {} },
      ],
    }),
    ['required spec.sharedCounters[1].counters', 'duplicate spec.sharedCounters[1]'],
  )
  const policy = (requestPolicy: object) => ({
    ...onNode,
    devices: [
      { name: 'a', allowMultipleAllocations: true, capacity: { memory: { value: '16Gi', requestPolicy } } },
    ],
  })
  const at = 'spec.devices[0].capacity[memory].requestPolicy'
  for (const [given, ...expected] of [
    [{ default: '1Gi', validValues: ['1Gi', '2Gi'] }],
    [{ default: '2Gi', validRange: { min: '1Gi', max: '8Gi', step: '1Gi' } }],
    [{ validValues: ['1Gi'] }, `required ${at}.default`],
    [
      { default: '3Gi', validValues: ['2Gi', '1Gi'] },
      `invalid ${at}.validValues[1]`,
      `invalid ${at}.validValues`,
    ],
    [{ default: '1Gi', validRange: {} }, `required ${at}.validRange.min`],
    [{ default: '2Gi', validRange: { min: '1Gi', step: '2Gi' } }, `invalid ${at}.validRange.step`],
    [{ default: '1Gi', validRange: { min: '1Gi', max: '32Gi' } }, `invalid ${at}.validRange.max`],
    [{ default: '1Gi', validValues: ['1Gi'], validRange: { min: '1Gi' } }, `forbidden ${at}`],
  ] as const)
    assert.deepEqual(refused('ResourceSlice', policy(given)), expected, JSON.stringify(given))
  const exclusive = { name: 'a', capacity: { memory: { value: '1Gi', requestPolicy: { default: '1Gi' } } } }
  assert.deepEqual(refused('ResourceSlice', { ...onNode, devices: [exclusive] }), [`forbidden ${at}`])
  const waiting = { name: 'a', bindingConditions: ['a.b/ready'], bindingFailureConditions: ['a.b/ready'] }
  assert.deepEqual(refused('ResourceSlice', { ...onNode, devices: [waiting] }), [
    'invalid spec.devices[0].bindingFailureConditions[0]',
  ])
})

test('a slice has 128 devices at most, and 64 where a device has taints', () => {
  const devices = (count: number, more: object = {}) =>
    Array.from({ length: count }, (_, index) => ({ name: `d${index}`, ...more }))
  const taints = [{ key: 'a', effect: 'None' }]
  const tooMany = ['tooMany spec.devices']
  assert.deepEqual(refused('ResourceSlice', { ...onNode, devices: devices(128) }), [])
  assert.deepEqual(refused('ResourceSlice', { ...onNode, devices: devices(129) }), tooMany)
  assert.deepEqual(refused('ResourceSlice', { ...onNode, devices: devices(64, { taints }) }), [])
  assert.deepEqual(refused('ResourceSlice', { ...onNode, devices: devices(65, { taints }) }), tooMany)
})

test('a rule that taints devices is checked, and need not select any', () => {
  const taint = { key: 'broken', effect: 'NoExecute' }
  assert.deepEqual(refused('DeviceTaintRule', { taint }), [])
  assert.deepEqual(
    refused('DeviceTaintRule', { taint, deviceSelector: { driver, pool: 'a/b', device: 'c' } }),
    [],
  )
  assert.deepEqual(refused('DeviceTaintRule', { deviceSelector: {} }), ['required spec.taint'])
  assert.deepEqual(
    refused('DeviceTaintRule', {
      taint: { key: '', value: 'a b', effect: 'PreferNoSchedule' },
      deviceSelector: { driver: '', pool: 'A', device: 'c.d' },
    }),
    [
      'required spec.deviceSelector.driver',
      'invalid spec.deviceSelector.pool',
      'invalid spec.deviceSelector.device',
      'invalid spec.taint.key',
      'invalid spec.taint.key',
      'invalid spec.taint.value',
      'notSupported spec.taint.effect',
    ],
  )
})
