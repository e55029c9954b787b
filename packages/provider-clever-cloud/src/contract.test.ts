import { karpenterKinds } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { type ContractWorld, examineProvider, mortalProcess } from '@tenon/provider/contract-suite'
import { nodeGroupIn, providerIdOf } from './names.ts'
import { cleverNodeClassKind } from './nodeclass/types.ts'
import { nodeGroupKind } from './nodegroup/types.ts'
import { statuses } from './testing/fake-platform.test-support.ts'
import { aClaim, aNodeClass, pool, readiness, Stage } from './testing/stage.test-support.ts'

async function open(): Promise<ContractWorld> {
  const stage = new Stage()
  const { kube, clock, platform } = stage
  const startProcess: ContractWorld['startProcess'] = (death) => {
    const { client, isDead } = mortalProcess(death)
    return { provider: stage.newProvider(client(platform.client(kube))), isDead }
  }
  return await Promise.resolve({
    provider: startProcess().provider,
    pool,
    unknownProviderID: providerIdOf('nobody'),
    malformedProviderIDs: (existing) => [
      '',
      'clevercloud://',
      existing.replace('clevercloud', 'aws'),
      nodeGroupIn(existing) ?? '',
    ],
    startProcess,
    advanceUntil: (done, limitMs) => clock.advanceUntil(done, limitMs),
    createClaim: (name) => kube.put(karpenterKinds.nodeClaim, aClaim(name)),
    storeClaim: (claim) => kube.put(karpenterKinds.nodeClaim, claim),
    instancesOf: (name) =>
      platform
        .groups()
        .filter(({ metadata }) => metadata.name === name && metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => providerIdOf(metadata.name)),
    addForeignInstance: () => {
      const metadata = { name: 'foreign' }
      const spec = { flavor: 'S', nodeCount: 1 }
      kube.put(nodeGroupKind, { apiVersion: 'api.clever-cloud.com/v1', kind: 'NodeGroup', metadata, spec })
      return providerIdOf('foreign')
    },
    loseNextAnswer: () => {
      const error = new KubeError('transport', 0, 'socket hang up')
      kube.failures.push({ verb: 'create', plural: nodeGroupKind.plural, error, hasEffect: true })
    },
    obstruct: async (obstacle) => {
      // A refused flavor counts as one that is sold out for a while.
      if (obstacle === 'refused') return false
      if (obstacle === 'nodeClassMissing') await kube.delete(cleverNodeClassKind, { name: 'default' })
      else if (obstacle === 'soldOut') platform.answer = () => statuses.overQuota
      else if (obstacle === 'throttled') {
        const error = new KubeError('tooManyRequests', 429, 'too many requests')
        kube.failures.push({ verb: 'create', plural: nodeGroupKind.plural, error })
      } else
        kube.put(cleverNodeClassKind, aNodeClass({ status: { conditions: [readiness('False', 'not yet')] } }))
      return true
    },
    causeDrift: () => {
      kube.put(cleverNodeClassKind, aNodeClass({ spec: { labels: { team: 'data' } } }))
      return true
    },
  })
}

examineProvider('clever-cloud', open)
