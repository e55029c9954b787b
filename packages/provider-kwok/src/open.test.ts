import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { NodePool } from '@tenon/api'
import { createCacheRegistry, createKubeClient } from '@tenon/kube'
import { type LogFields, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { isProviderSettingError } from '@tenon/provider'
import { kwok } from './module.ts'
import { openKwok } from './open.ts'

const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
        requirements: [],
      },
    },
  },
}

function open(env: Readonly<Record<string, string>>) {
  const errors: (LogFields | undefined)[] = []
  const logger = {
    ...silentLogger,
    error: (_: string, fields?: LogFields) => {
      errors.push(fields)
    },
  }
  const clock = new VirtualClock()
  const random = new SeededRandom(1)
  const transport = { send: () => Promise.reject(new Error('there is no server')) }
  const client = createKubeClient({ transport, clock, userAgent: 'test' })
  const registry = createCacheRegistry({ client, clock, logger, random })
  const provider = openKwok(env, { kubernetes: { client, registry }, runtime: { clock, random, logger } })
  const names = async () => (await provider.getInstanceTypes(pool)).map(({ name }) => name)
  return { provider, errors, names }
}

function fileWith(t: TestContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tenon-catalogue-'))
  t.after(() => {
    rmSync(folder, { recursive: true })
  })
  const path = join(folder, 'types.json')
  writeFileSync(path, text)
  return path
}

const anItem = {
  name: 'one.large',
  architecture: 'amd64',
  operatingSystems: ['linux'],
  resources: { cpu: '4', memory: '16Gi' },
  offerings: [{ zone: 'zone-a', capacityType: 'spot', price: 0.5 }],
}

test('without a file there are the 144 types', async () => {
  const { names, errors } = open({ INSTANCE_TYPES_FILE_PATH: '' })
  assert.equal((await names()).length, 144)
  assert.deepEqual(errors, [])
})

test('OPS-74 a catalogue that cannot be read is told as an error and leaves no instance type', async () => {
  const { names, errors } = open({ INSTANCE_TYPES_FILE_PATH: '/nowhere/types.json' })
  assert.deepEqual(await names(), [])
  assert.equal(errors.length, 1)
  assert.equal(errors[0]?.['path'], '/nowhere/types.json')
})

test('what is bad in a catalogue is told by name, and the rest is offered', async (t) => {
  const path = fileWith(t, JSON.stringify([{ ...anItem, name: 'bad.large', resources: {} }, anItem]))
  const { names, errors } = open({ INSTANCE_TYPES_FILE_PATH: path })
  assert.deepEqual(await names(), ['one.large'])
  assert.equal(errors.length, 1)
  assert.match(String(errors[0]?.['error']), /^instance type bad\.large is skipped: resources\.cpu/)
})

test('labels that offerings differ by are well known', (t) => {
  const requirements = [
    { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['a'] },
    { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['spot'] },
    { key: 'example.com/rack', operator: 'In', values: ['r1'] },
  ]
  const item = { ...anItem, offerings: [{ Price: 1, Requirements: requirements }] }
  const { provider } = open({ INSTANCE_TYPES_FILE_PATH: fileWith(t, JSON.stringify([item])) })
  assert.ok(provider.wellKnownLabels.includes('example.com/rack'))
  assert.ok(!provider.wellKnownLabels.includes('topology.kubernetes.io/zone'))
})

test('a partition that cannot be a label’s value is refused', () => {
  open({ KWOK_PARTITIONS: 'a, b' })
  assert.throws(
    () => open({ KWOK_PARTITIONS: 'a,,b' }),
    (error) =>
      isProviderSettingError(error) &&
      /KWOK_PARTITIONS=a,,b: "" is not a valid name; use names such as a,b,c/.test(error.message),
  )
})

test('manifests are checked with the labels that the running provider knows', async (t) => {
  const path = fileWith(t, JSON.stringify([anItem]))
  for (const env of [{}, { INSTANCE_TYPES_FILE_PATH: path }]) {
    const { rules } = await kwok.offline(env, async (file) => await readFile(file, 'utf8'))
    const { wellKnownLabels, restrictedDomains } = open(env).provider
    assert.deepEqual(rules, { wellKnownLabels, restrictedDomains })
  }
})
