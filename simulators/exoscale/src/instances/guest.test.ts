import assert from 'node:assert/strict'
import { test } from 'node:test'
import { document, ExoscaleFixture, userData } from '../exoscale.test-support.ts'

const labels = '[settings.kubernetes.node-labels]\n"karpenter.sh/nodepool" = "default"\nteam = "a"\n'
const taints =
  '[settings.kubernetes.node-taints]\n"example.com/gpu" = ["true:NoSchedule", "true:NoExecute"]\n'

test('an instance boots after its delay and joins with what its user data says', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance({ 'user-data': userData({}, labels + taints) })
  assert.equal(world.look(id).state, 'running')
  await world.clock.advance(9_999)
  assert.equal(world.look(id).nodeName, undefined)
  await world.clock.advance(1)
  assert.equal(world.look(id).nodeName, 'node-a')
  const spec = world.joiner.kubelets.get('node-a')?.spec
  assert.equal(spec?.providerId, `exoscale://${id}`)
  assert.equal(spec.systemUuid, id)
  assert.equal(spec.kubeletVersion, 'v1.34.1')
  assert.deepEqual(spec.labels, {
    'karpenter.sh/nodepool': 'default',
    team: 'a',
    'kubernetes.io/hostname': 'node-a',
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
  })
  assert.deepEqual(spec.taints, [
    { key: 'example.com/gpu', value: 'true', effect: 'NoSchedule' },
    { key: 'example.com/gpu', value: 'true', effect: 'NoExecute' },
    { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
  ])
  assert.equal(spec.capacity['cpu'], '2')
  assert.equal(spec.allocatable['cpu'], '1700m')
  assert.equal(spec.capacity['memory'], '4194304Ki')
  assert.equal(spec.capacity['pods'], '110')
  const [hostname, external, internal] = spec.addresses
  assert.deepEqual(hostname, { type: 'Hostname', address: 'node-a' })
  assert.equal(external?.type, 'ExternalIP')
  assert.deepEqual(internal, { type: 'InternalIP', address: external.address })
})

test('reservations of the user data lower what can be allocated', async () => {
  const world = new ExoscaleFixture()
  const tables =
    '[settings.kubernetes.kube-reserved]\ncpu = "1"\n[settings.kubernetes.system-reserved]\nmemory = "1Gi"\n'
  await world.instance({ 'user-data': userData({}, tables) })
  await world.clock.advance(10_000)
  const spec = world.joiner.kubelets.get('node-a')?.spec
  assert.equal(spec?.allocatable['cpu'], '900m')
  assert.equal(spec.allocatable['memory'], '2772Mi')
})

for (const [form, encode] of Object.entries({
  'base64 of gzip': () => userData(),
  'base64 of text': () => Buffer.from(document()).toString('base64'),
  'plain text': () => document(),
})) {
  test(`the guest reads user data that is ${form}`, async () => {
    const world = new ExoscaleFixture()
    const id = await world.instance({ 'user-data': encode() })
    await world.clock.advance(10_000)
    assert.equal(world.look(id).nodeName, 'node-a')
  })
}

test('an exact duplicate of a taint counts once', async () => {
  const world = new ExoscaleFixture()
  const twice = '[settings.kubernetes.node-taints]\na = ["x:NoSchedule", "x:NoSchedule"]\n'
  await world.instance({ 'user-data': userData({}, twice) })
  await world.clock.advance(10_000)
  const keys = world.joiner.kubelets.get('node-a')?.spec.taints.map((taint) => taint.key)
  assert.deepEqual(keys, ['a', 'node.cloudprovider.kubernetes.io/uninitialized'])
})

const taintTable = (entry: string) => userData({}, `[settings.kubernetes.node-taints]\na = ${entry}\n`)
const broken: Readonly<Record<string, [userDataText: string | undefined, reason: RegExp]>> = {
  'no user data': [undefined, /no user data/],
  'text that is no TOML': ['not [ toml', /cannot be read/],
  'a broken gzip stream': ['H4sIAAAAAAAAA0tMSk4BAMJBJDUDAAA', /cannot be read/],
  'no Kubernetes settings': ['[settings]\nx = 1\n', /no table settings.kubernetes/],
  'no endpoint': [userData({ 'api-server': '' }), /lacks api-server/],
  'no token': [userData({ 'bootstrap-token': '' }), /lacks bootstrap-token/],
  'no certificate': [userData({ 'cluster-certificate': '' }), /lacks cluster-certificate/],
  'a certificate that is not encoded': [
    userData({ 'cluster-certificate': '"plain"' }),
    /cluster-certificate is not/,
  ],
  'no cloud provider': [userData({ 'cloud-provider': '' }), /cloud-provider is not external/],
  'another cloud provider': [userData({ 'cloud-provider': '"aws"' }), /cloud-provider is not external/],
  'thresholds the wrong way round': [
    userData({ 'image-gc-low-threshold-percent': '90' }),
    /image-gc-low-threshold-percent is not below/,
  ],
  'a minimum age that is not a duration': [userData({ 'image-minimum-gc-age': '"soon"' }), /not a duration/],
  'a reservation that is not a quantity': [
    userData({}, '[settings.kubernetes.kube-reserved]\ncpu = "much"\n'),
    /kube-reserved.cpu is not a quantity/,
  ],
  'reservations beyond the instance': [
    userData({}, '[settings.kubernetes.kube-reserved]\ncpu = "8"\n'),
    /leave no cpu/,
  ],
  'a taint without effect': [taintTable('["true"]'), /not value:Effect/],
  'a taint with an unknown effect': [taintTable('["true:Never"]'), /not value:Effect/],
  'two values for one taint': [taintTable('["x:NoSchedule", "y:NoSchedule"]'), /two values/],
  'a label kubelet may not set': [
    userData({}, '[settings.kubernetes.node-labels]\n"node-role.kubernetes.io/worker" = "x"\n'),
    /may not set the label/,
  ],
}

for (const [what, [text, reason]] of Object.entries(broken)) {
  test(`an instance never joins with ${what}`, async () => {
    const world = new ExoscaleFixture()
    const id = await world.instance({ 'user-data': text })
    await world.clock.advance(60_000)
    assert.equal(world.look(id).state, 'running')
    assert.match(world.look(id).whyNotJoined ?? '', reason)
    assert.equal(world.joiner.attempts, 0)
  })
}

test('a name that is no host name keeps an instance out', async () => {
  const world = new ExoscaleFixture()
  const id = await world.instance({ name: 'Node_A' })
  await world.clock.advance(60_000)
  assert.match(world.look(id).whyNotJoined ?? '', /not a host name/)
})

for (const [what, changes, reason] of [
  ['a wrong endpoint', { 'api-server': '"https://10.0.0.1:443"' }, 'nobody answers'],
  [
    'a wrong authority',
    { 'cluster-certificate': `"${Buffer.from('-----BEGIN CERTIFICATE-----').toString('base64')}"` },
    'unknown authority',
  ],
  ['a wrong token', { 'bootstrap-token': '"abcdef.ffffffffffffffff"' }, 'unauthorized'],
] as const) {
  test(`an instance with ${what} keeps trying, and gives up in the end`, async () => {
    const world = new ExoscaleFixture({ settings: { joinTimeoutMs: 60_000 } })
    const id = await world.instance({ 'user-data': userData(changes) })
    await world.clock.advance(10_000)
    assert.equal(world.look(id).whyNotJoined, reason)
    assert.equal(world.joiner.attempts, 1)
    await world.clock.advance(30_000)
    assert.equal(world.joiner.attempts, 4)
    await world.clock.advance(600_000)
    assert.equal(world.joiner.attempts, 6)
    assert.equal(world.look(id).nodeName, undefined)
  })
}

test('an instance joins once the API server can be reached', async () => {
  const world = new ExoscaleFixture()
  world.joiner.isDown = true
  const id = await world.instance()
  await world.clock.advance(25_000)
  assert.equal(world.look(id).whyNotJoined, 'connection refused')
  world.joiner.isDown = false
  await world.clock.advance(10_000)
  assert.equal(world.look(id).nodeName, 'node-a')
  assert.equal(world.look(id).whyNotJoined, undefined)
})

test('GPUs are announced by instances of an nvidia template only', async () => {
  for (const variant of ['standard', 'nvidia'] as const) {
    const world = new ExoscaleFixture()
    const { 'instance-types': types } = await world.ok('GET', '/instance-type')
    const type = types.find((each: { family: string; size: string }) => each.family === 'gpua30')
    const template = world.cloud.publishTemplate({ version: '1.34.1', variant })
    await world.instance({ 'instance-type': { id: type.id }, template: { id: template } })
    await world.clock.advance(10_000)
    const gpus = world.joiner.kubelets.get('node-a')?.spec.capacity['nvidia.com/gpu']
    assert.equal(gpus, variant === 'nvidia' ? '1' : undefined)
  }
})

for (const gpuDriver of [false, true])
  test(`GPUs are devices where their driver runs: ${gpuDriver}`, async () => {
    const world = new ExoscaleFixture()
    world.cloud.settings.gpuDriver = gpuDriver
    const { 'instance-types': types } = await world.ok('GET', '/instance-type')
    const type = types.find(
      (each: { family: string; size: string }) => each.family === 'gpua30' && each.size === 'medium',
    )
    const template = world.cloud.publishTemplate({ version: '1.34.1', variant: 'nvidia' })
    await world.instance({ 'instance-type': { id: type.id }, template: { id: template } })
    await world.clock.advance(10_000)
    const templates = world.joiner.kubelets.get('node-a')?.spec.devices
    assert.deepEqual(
      templates?.map(({ driver, devices }) => [driver, devices.map(({ name }) => name)]),
      gpuDriver ? [['gpu.nvidia.com', ['gpu-0', 'gpu-1']]] : undefined,
    )
  })
