import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds } from '@tenon/api'
import { MemoryKube } from '@tenon/provider/contract-suite'
import { VirtualClock } from '@tenon/runtime'
import { nodeClassFinalizer } from '../identifiers.ts'
import { aNodeClass } from '../testing/world.test-support.ts'
import { NodeClassDeletion } from './deletion.ts'
import { type ExoscaleNodeClass, exoscaleNodeClassKind } from './types.ts'

const named = (name: string): ExoscaleNodeClass => {
  const object = aNodeClass()
  return { ...object, metadata: { ...object.metadata, name, finalizers: [nodeClassFinalizer] } }
}

/** How often instances without a claim are collected when `standard` goes, which the cache takes for the only class. */
async function collections(...onServer: readonly string[]): Promise<number> {
  const kube = new MemoryKube(new VirtualClock())
  for (const name of onServer) kube.put(exoscaleNodeClassKind, named(name))
  let count = 0
  const going = named('standard')
  const deletion = new NodeClassDeletion({
    kube,
    nodeClaims: kube.cache(karpenterKinds.nodeClaim),
    nodeClasses: { list: () => [going] },
    garbage: {
      collectOrphans: () => {
        count++
        return Promise.resolve([])
      },
    },
    events: kube.recorder,
  })
  // A class that the server does not know cannot be patched.
  await deletion.reconcile(going, new AbortController().signal).catch(() => undefined)
  return count
}

test('ADO-15 the last class takes lost instances along, if the server says so, too', async () => {
  assert.equal(await collections('standard'), 1)
})

test('ADO-15 a cache that lacks another class, or a list that lacks all of them, takes nothing along', async () => {
  assert.equal(await collections('standard', 'other'), 0)
  assert.equal(await collections(), 0)
})
