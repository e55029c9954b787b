import { karpenterKinds } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { type ContractWorld, examineProvider, mortalProcess } from '@tenon/provider/contract-suite'
import { capacityAnnotations } from './names.ts'
import { clusterAPINodeClassKind } from './node-class.ts'
import {
  aClaim,
  aNodeClass,
  hubKinds,
  names,
  pool,
  readiness,
  Stage,
} from './testing/fake-hub.test-support.ts'

async function open(): Promise<ContractWorld> {
  const stage = new Stage()
  const { kube, clock } = stage
  stage.add({ name: 'md-0' })
  stage.add({ name: 'md-1', annotations: { [capacityAnnotations.cpu]: '8' } })
  const startProcess: ContractWorld['startProcess'] = (death) => {
    const { client, isDead } = mortalProcess(death)
    return { provider: stage.newProvider(client(kube)), isDead }
  }
  return await Promise.resolve({
    provider: startProcess().provider,
    pool,
    unknownProviderID: 'test:///nobody',
    malformedProviderIDs: () => [''],
    startProcess,
    advanceUntil: (done, limitMs) => clock.advanceUntil(done, limitMs),
    createClaim: (name) => kube.put(karpenterKinds.nodeClaim, aClaim(name)),
    storeClaim: (claim) => kube.put(karpenterKinds.nodeClaim, claim),
    instancesOf: (name) =>
      stage
        .machines()
        .filter(
          ({ metadata }) =>
            metadata.deletionTimestamp === undefined && stage.boundTo(name).includes(metadata.name),
        )
        // Until the infrastructure has made it, there is nothing to name.
        .flatMap(({ spec }) => spec?.providerID ?? []),
    addForeignInstance: () => {
      kube.put(hubKinds.machine, {
        apiVersion: 'cluster.x-k8s.io/v1beta2',
        kind: 'Machine',
        metadata: { name: 'foreign', namespace: 'default', labels: { [names.deploymentName]: 'other' } },
        spec: { providerID: 'test:///foreign' },
      })
      return 'test:///foreign'
    },
    loseNextAnswer: () => {
      const error = new KubeError('transport', 0, 'socket hang up')
      kube.failures.push({ verb: 'patch', plural: 'machinedeployments', error, hasEffect: true })
    },
    obstruct: async (obstacle) => {
      if (obstacle === 'refused') return false
      if (obstacle === 'nodeClassMissing') await kube.delete(clusterAPINodeClassKind, { name: 'default' })
      else if (obstacle === 'soldOut')
        for (const name of ['md-0', 'md-1'])
          await kube.patch(
            hubKinds.machineDeployment,
            { namespace: 'default', name },
            { metadata: { annotations: { [names.maxSize]: '0' } } },
          )
      else if (obstacle === 'throttled') {
        const error = new KubeError('tooManyRequests', 429, 'too many requests')
        kube.failures.push({ verb: 'patch', plural: 'machinedeployments', error })
      } else
        kube.put(
          clusterAPINodeClassKind,
          aNodeClass({ status: { conditions: [readiness('False', 'not yet')] } }),
        )
      return true
    },
    causeDrift: () => false,
  })
}

examineProvider('cluster-api', open)
