import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { clusterId, ExoscaleFixture, nobody, userData } from './exoscale.test-support.ts'
import { type Schema, SchemaChecker } from './schema-check.test-support.ts'

interface Operation {
  readonly operationId: string
  readonly responses: {
    readonly '200': { readonly content: { readonly 'application/json': { schema: Schema } } }
  }
}

interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

// The document lies beside the repository, not in it.
const file = resolve(import.meta.dirname, '../../../../../shared/data/exoscale-openapi.yaml')
const skip = existsSync(file) ? false : 'the API document is not present'

const network = 'b0030000-0000-4000-8000-000000000003'
const pool = 'b0010000-0000-4000-8000-000000000001'
const nodepool = 'b0020000-0000-4000-8000-000000000002'
const cluster = `/sks-cluster/${clusterId}`

/** The calls of the walk after an instance was made; `INSTANCE` and others stand for ids found on the way. */
const walk: readonly (readonly [method: string, path: string, body?: unknown])[] = [
  ['GET', '/zone'],
  ['GET', '/instance-type'],
  ['GET', '/instance-type/TYPE'],
  ['GET', '/template'],
  ['GET', '/template/TEMPLATE'],
  ['GET', '/sks-template/1.34.1/nvidia'],
  ['GET', '/sks-cluster-version'],
  ['GET', '/security-group'],
  ['GET', `/security-group/${nobody}`],
  ['PUT', `/security-group/${nobody}:attach`, { instance: { id: 'INSTANCE' } }],
  ['PUT', `/security-group/${nobody}:detach`, { instance: { id: 'INSTANCE' } }],
  ['GET', '/anti-affinity-group'],
  ['GET', '/anti-affinity-group/GROUP'],
  ['GET', '/private-network'],
  ['PUT', `/private-network/${network}:attach`, { instance: { id: 'INSTANCE' } }],
  ['GET', `/private-network/${network}`],
  ['GET', '/instance'],
  ['GET', '/instance/INSTANCE'],
  ['PUT', `/private-network/${network}:detach`, { instance: { id: 'INSTANCE' } }],
  ['PUT', '/instance/INSTANCE', { labels: { b: '2' } }],
  ['DELETE', '/instance/INSTANCE/labels'],
  ['PUT', '/instance/INSTANCE:reboot'],
  ['PUT', '/instance/INSTANCE:stop'],
  ['PUT', '/instance/INSTANCE:start', {}],
  ['GET', '/operation/OPERATION'],
  ['GET', '/quota'],
  ['GET', '/quota/instance'],
  ['GET', '/sks-cluster'],
  ['GET', cluster],
  ['PUT', `${cluster}/nodepool/${nodepool}:scale`, { size: 3 }],
  ['GET', `${cluster}/nodepool/${nodepool}`],
  ['PUT', `${cluster}/nodepool/${nodepool}:evict`, { instances: ['NODEPOOL_MEMBER'] }],
  ['GET', `${cluster}/authority/kubelet/cert`],
  ['PUT', `${cluster}/generate-karpenter-nodepool`],
  ['PUT', `${cluster}/generate-karpenter-exoscale-nodeclass`],
  ['GET', '/instance-pool'],
  ['GET', `/instance-pool/${pool}`],
  ['PUT', `/instance-pool/${pool}:scale`, { size: 3 }],
  ['PUT', `/instance-pool/${pool}:evict`, { instances: ['POOL_MEMBER'] }],
  ['DELETE', '/instance/INSTANCE'],
]

test('every operation of the API document is served, and answers as the document says', {
  skip,
}, async () => {
  const document = parse(readFileSync(file, 'utf8')) as ApiDocument
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
  const checker = new SchemaChecker(document.components.schemas, ['visibility'])
  const world = walkedWorld()
  const complaints: string[] = []
  const seen = new Set<string>()
  const call = async (method: string, path: string, body?: unknown) => {
    const reply = await world.ok(method, path, body)
    const { operation } = world.cloud.calls().at(-1) ?? { operation: '' }
    const known = operations.find(({ operationId }) => operationId === operation)
    assert.ok(known, `${operation} is not in the document`)
    seen.add(operation)
    const { schema } = known.responses['200'].content['application/json']
    complaints.push(...checker.check(schema, reply).map((complaint) => `${operation}: ${complaint}`))
    await world.clock.advance(1_000)
    return reply
  }
  const groups = (await call('GET', '/anti-affinity-group'))['anti-affinity-groups']
  const creation = await call(
    'POST',
    '/instance',
    world.body({
      labels: { a: '1' },
      'anti-affinity-groups': [{ id: groups[0].id }],
      'public-ip-assignment': 'dual',
    }),
  )
  const instance = await world.ok('GET', `/instance/${creation.reference.id}`)
  const members = world.cloud.instances().filter(({ instancePoolId }) => instancePoolId !== undefined)
  const names: Readonly<Record<string, string>> = {
    INSTANCE: instance.id,
    OPERATION: creation.id,
    TYPE: instance['instance-type'].id,
    TEMPLATE: instance.template.id,
    GROUP: groups[0].id,
    POOL_MEMBER: members.find(({ instancePoolId }) => instancePoolId === pool)?.id ?? '',
    NODEPOOL_MEMBER: members.find(({ instancePoolId }) => instancePoolId !== pool)?.id ?? '',
  }
  const named = (text: string) => text.replace(/[A-Z_]{4,}/g, (name) => names[name] ?? name)
  for (const [method, path, body] of walk) {
    await call(method, named(path), body && JSON.parse(named(JSON.stringify(body))))
  }
  assert.deepEqual(complaints, [])
  const missed = operations.map(({ operationId }) => operationId).filter((id) => !seen.has(id))
  assert.deepEqual(missed, [])
})

function walkedWorld(): ExoscaleFixture {
  const world = new ExoscaleFixture({
    seed: {
      securityGroups: [{ id: nobody, name: 'web' }],
      privateNetworks: [
        {
          id: network,
          name: 'lan',
          range: { startIp: '10.0.0.1', endIp: '10.0.0.9', netmask: '255.255.255.0' },
        },
      ],
      instancePools: [{ id: pool, name: 'batch', type: 'standard.small', size: 2 }],
      nodepools: [
        {
          id: nodepool,
          name: 'workers',
          type: 'standard.medium',
          size: 2,
          userData: userData(),
          labels: { a: 'b' },
          taints: { c: { value: 'd', effect: 'NoSchedule' } },
        },
      ],
    },
  })
  world.announce()
  return world
}
