/** `tenon up` with a simulated Cluster API: two processes, a directory, SIGKILL. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeObject, Node, NodeClaim, Pod } from '@tenon/api'
import {
  eventually,
  objectsOf,
  startTenon,
  temporaryDirectory,
} from './testing/tenon-process.test-support.ts'

const up = ['up', '--port', '0', '--api-port', '0', '--boot-delay', '1s', '--cloud', 'cluster-api']

test('a cluster of Cluster API that is killed and started again goes on with its Machines, nodes and pods', async (t) => {
  const cwd = await temporaryDirectory(t)
  const start = () => startTenon(t, cwd, [...up, '--data-dir', 'data'])
  let last = start()
  const picture = async () => {
    const pods = await objectsOf<Pod>(cwd, 'pods')
    const nodes = await objectsOf<Node>(cwd, 'nodes')
    const claims = await objectsOf<NodeClaim>(cwd, 'nodeclaims')
    const machines = await objectsOf<KubeObject>(cwd, 'machines')
    return {
      pods: pods
        .filter(({ status }) => status?.phase === 'Running')
        .map(({ metadata, spec }) => `${metadata.uid} ${spec.nodeName}`),
      nodes: nodes.map(({ metadata, spec }) => `${metadata.uid} ${spec?.providerID}`),
      claims: claims.map(({ metadata, status }) => `${metadata.uid} ${status?.providerID}`),
      machines: machines.map(({ metadata }) => metadata.uid),
    }
  }
  const before = await eventually(
    async () => {
      if (!/^\S+ {2}pods 12 running/m.test(last.out())) return undefined
      const now = await picture()
      return now.pods.length === 12 && now.claims.length === now.machines.length ? now : undefined
    },
    () => `12 pods run:\n${last.out()}${last.err()}`,
  )
  assert.equal(before.nodes.length, before.machines.length)
  assert.match(last.out(), /^simulated Cluster API +in the cluster itself$/m)
  await last.end('SIGKILL')

  last = start()
  await eventually(
    () => /^Kubernetes API/m.test(last.out()) || undefined,
    () => `it starts again: ${last.out()}${last.err()}`,
  )
  // Long enough for a Machine to be replaced, or for another to be made.
  for (let look = 0; look < 10; look++) {
    assert.deepEqual(await picture(), before, `look ${look}`)
    await sleep(1000)
  }
})
