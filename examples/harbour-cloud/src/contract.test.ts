/** The contract suite on the simulated cloud, and what it cannot know of this one. */
import assert from 'node:assert/strict'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { isConditionTrue, karpenterKinds, labels, type NodeClaim, type NodePool } from '@tenon/provider'
import {
  type ContractWorld,
  examineProvider,
  MemoryKube,
  mortalProcess,
  silentLogger,
  VirtualClock,
} from '@tenon/provider/contract-suite'
import { Catalogue } from './catalogue.ts'
import { CloudApi, CloudError, overHttp } from './cloud-api.ts'
import { type HarbourNodeClass, harbourNodeClass, reconcileNodeClass } from './node-class.ts'
import { HarbourProvider } from './provider.ts'
import { SimulatedCloud } from './simulated-cloud.ts'
import { userData } from './user-data.ts'

const nodeClassRef = { group: 'harbour.example.com', kind: 'HarbourNodeClass', name: 'default' }
const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: { template: { spec: { nodeClassRef, requirements: [] } } },
}

const aClaim = (name: string): NodeClaim => ({
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name, labels: { [labels.nodePool]: 'default' } },
  spec: {
    nodeClassRef,
    requirements: [{ key: labels.instanceType, operator: 'In', values: ['small', 'medium'] }],
    resources: { requests: { cpu: '1', memory: '1Gi' } },
  },
})

const aNodeClass = (status?: NonNullable<HarbourNodeClass['status']>): HarbourNodeClass => ({
  apiVersion: 'harbour.example.com/v1',
  kind: 'HarbourNodeClass',
  metadata: { name: 'default' },
  spec: { image: 'debian-13' },
  ...(status && { status }),
})

const ready = (
  imageID: string,
  status: 'True' | 'False' = 'True',
): NonNullable<HarbourNodeClass['status']> => {
  const times = { lastTransitionTime: '2026-01-01T00:00:00Z' }
  return { imageID, conditions: [{ type: 'Ready', status, reason: 'Told', message: '', ...times }] }
}

async function open(): Promise<ContractWorld> {
  const clock = new VirtualClock()
  const cloud = new SimulatedCloud(clock)
  const kube = new MemoryKube(clock)
  kube.put(harbourNodeClass, aNodeClass(ready('image-1')))
  const startProcess: ContractWorld['startProcess'] = (death) => {
    const process = mortalProcess(death)
    const api = new CloudApi(process.transport(cloud), 'token', 'test')
    const provider = new HarbourProvider({
      api,
      kube: process.client(kube),
      nodeClasses: kube.cache(harbourNodeClass),
      catalogue: new Catalogue(api, clock),
      cluster: 'ours',
      join: { server: 'https://cluster', token: 'join' },
      clock,
      logger: silentLogger,
    })
    return { provider, isDead: process.isDead }
  }
  return await Promise.resolve({
    provider: startProcess().provider,
    pool,
    unknownProviderID: 'harbour://99999999-0000-4000-8000-000000000000',
    malformedProviderIDs: (existing) => [
      '',
      'harbour://',
      'harbour://x',
      existing.replace('harbour', 'other'),
    ],
    startProcess,
    advanceUntil: (done, limitMs) => clock.advanceUntil(done, limitMs),
    createClaim: (name) => kube.put(karpenterKinds.nodeClaim, aClaim(name)),
    storeClaim: (claim) => kube.put(karpenterKinds.nodeClaim, claim),
    instancesOf: (name) =>
      [...cloud.servers.values()]
        .filter(({ tags, state }) => tags['tenon-node-claim'] === name && state !== 'deleting')
        .map(({ id }) => `harbour://${id}`),
    addForeignInstance: () => {
      const tags = { 'tenon-cluster': 'other', 'tenon-node-claim': 'one' }
      const order = { name: 'foreign', size: 'small', zone: 'north-1', image: 'image-1', userData: '' }
      return `harbour://${cloud.add({ ...order, tags }).id}`
    },
    loseNextAnswer: () => {
      cloud.losesNextAnswer = true
    },
    obstruct: async (obstacle) => {
      if (obstacle === 'nodeClassMissing') await kube.delete(harbourNodeClass, { name: 'default' })
      else if (obstacle === 'nodeClassNotReady')
        kube.put(harbourNodeClass, aNodeClass(ready('image-1', 'False')))
      else cloud.trouble = obstacle
      return true
    },
    causeDrift: () => {
      kube.put(harbourNodeClass, aNodeClass(ready('image-2')))
      return true
    },
  })
}

examineProvider('harbour', open)

test('a node class becomes ready when its image exists, and says so when it does not', async () => {
  const clock = new VirtualClock()
  const kube = new MemoryKube(clock)
  const cloud = new SimulatedCloud(clock)
  const nodeClasses = kube.cache(harbourNodeClass)
  const api = new CloudApi(cloud, 'token', 'test')
  const reconcile = async (image: string): Promise<HarbourNodeClass | undefined> => {
    kube.put(harbourNodeClass, { ...aNodeClass(), spec: { image } })
    const deps = { api, kube, nodeClasses, clock, logger: silentLogger }
    const work = reconcileNodeClass(deps, 'default', new AbortController().signal)
    await clock.advance(1000)
    assert.equal((await work).kind, 'after')
    return nodeClasses.get({ name: 'default' })
  }
  const good = await reconcile('debian-13')
  assert.ok(good !== undefined && isConditionTrue(good, 'Ready'))
  assert.equal(good.status?.imageID, 'image-1')
  const bad = await reconcile('debian-1')
  assert.ok(bad !== undefined && !isConditionTrue(bad, 'Ready'))
  assert.match(bad.status?.conditions?.[0]?.message ?? '', /there is no image "debian-1"/)
})

test('a server joins with the taint that keeps pods away until it is registered', () => {
  const script = userData({ server: 'https://cluster', token: 'join', labels: { a: 'b' } })
  assert.match(script, /--register-with-taints=karpenter\.sh\/unregistered=:NoExecute$/m)
  assert.match(script, /--provider-id=harbour:\/\/\$\(cat \/run\/harbour\/id\) \\$/m)
})

test('over HTTP, requests carry the token, and a refusal tells its code', async () => {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    response.writeHead(429, { 'retry-after': '2' }).end('{"code":"slow_down"}')
  })
  const api = new CloudApi(overHttp(await listening(server)), 'secret', 'test')
  try {
    await assert.rejects(api.images(), (error) => {
      assert.ok(error instanceof CloudError)
      assert.deepEqual([error.status, error.code, error.retryAfterMs], [429, 'slow_down', 2000])
      return true
    })
    assert.deepEqual(seen, ['GET /v1/images Bearer secret'])
  } finally {
    server.close()
  }
})

async function listening(server: HttpServer): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
