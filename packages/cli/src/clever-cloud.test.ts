/** `tenon up` in a cloud that is used through objects of the cluster: two processes, a directory, SIGKILL. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeObject, Node, NodeClaim, Pod } from '@tenon/api'
import {
  eventually,
  kubectlOut,
  objectsOf,
  runTenon,
  startTenon,
  temporaryDirectory,
} from './testing/tenon-process.test-support.ts'

const up = ['up', '--port', '0', '--api-port', '0', '--boot-delay', '1s']

test('RPT section 11: a cluster at Clever Cloud that is killed and started again goes on with its groups, nodes and pods', async (t) => {
  const cwd = await temporaryDirectory(t)
  const start = () => startTenon(t, cwd, [...up, '--cloud', 'clever-cloud', '--data-dir', 'data'])
  let last = start()
  const picture = async () => {
    const pods = await objectsOf<Pod>(cwd, 'pods')
    const nodes = await objectsOf<Node>(cwd, 'nodes')
    const claims = await objectsOf<NodeClaim>(cwd, 'nodeclaims')
    const groups = await objectsOf<KubeObject>(cwd, 'nodegroups')
    return {
      pods: pods
        .filter(({ status }) => status?.phase === 'Running')
        .map(({ metadata, spec }) => `${metadata.uid} ${spec.nodeName}`),
      nodes: nodes.map(({ metadata, spec }) => `${metadata.uid} ${spec?.providerID}`),
      claims: claims.map(({ metadata, status }) => `${metadata.uid} ${status?.providerID}`),
      groups: groups.map(({ metadata }) => metadata.uid),
    }
  }
  const before = await eventually(
    async () => {
      if (!/^\S+ {2}pods 12 running/m.test(last.out())) return undefined
      const now = await picture()
      return now.pods.length === 12 && now.claims.length === now.groups.length ? now : undefined
    },
    () => `12 pods run:\n${last.out()}${last.err()}`,
  )
  assert.equal(before.nodes.length, before.groups.length + 3, 'three nodes are of the control plane')
  assert.match(last.out(), /^simulated Clever Cloud +in the cluster itself$/m)
  assert.match(last.out(), /\d 2XS-equivalents\/hour$/m)
  await last.end('SIGKILL')

  last = start()
  await eventually(
    () => /^Kubernetes API/m.test(last.out()) || undefined,
    () => `it starts again: ${last.out()}${last.err()}`,
  )
  // Long enough for a node to be found lost, or for another to be launched.
  for (let look = 0; look < 20; look++) {
    assert.deepEqual(await picture(), before, `look ${look}`)
    await sleep(500)
  }
  const ready = await kubectlOut(cwd, ['get', 'nodes', '--no-headers'])
  assert.equal(ready.match(/ Ready /g)?.length, before.nodes.length, ready)
})

test('--cloud is another spelling of --provider, and both together have to agree', async (t) => {
  const cwd = await temporaryDirectory(t)
  const both = await runTenon(t, cwd, [...up, '--cloud', 'exoscale', '--provider', 'clever-cloud'])
  assert.deepEqual([both.code, both.out], [1, ''])
  assert.equal(
    both.err,
    'error: --cloud=exoscale and --provider=clever-cloud are different; use one of them\n',
  )
  const unknown = await runTenon(t, cwd, [...up, '--cloud', 'kwok'])
  assert.match(
    unknown.err,
    /^error: --provider=kwok: KWOK cannot be simulated: .* use exoscale or clever-cloud or cluster-api\n$/,
  )
  const { out } = await runTenon(t, cwd, ['devcluster', '--help'])
  assert.match(out, /--cloud <name> +alias of --provider/)
})
