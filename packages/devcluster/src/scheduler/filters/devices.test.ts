import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodSpec } from '@tenon/api'
import { aCluster } from '../scheduling-fixture.ts'

test('a pod with resource claims stays pending, with the reason', async () => {
  const resourceClaims: PodSpec['resourceClaims'] = [{ name: 'gpu', resourceClaimName: 'gpu' }]
  const cluster = aCluster().node('a').pod('training', { resourceClaims }).pod('web')
  await cluster.settle()
  assert.equal(cluster.nodeOf('web'), 'a')
  assert.equal(cluster.nodeOf('training') ?? '', '')
  assert.match(
    cluster.reason('training') ?? '',
    /^0\/1 nodes are available: cannot allocate all claims \(spec.resourceClaims\): devices are not simulated\./,
  )
})
