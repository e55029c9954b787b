import { karpenterKinds, type KubeObject, type ResourceType } from '@tenon/api'
import { type KubeClient, KubeError, type ObjectKey, type PatchOptions } from '@tenon/kube'
import { type ContractWorld, examineProvider, mortalProcess } from '@tenon/provider/contract-suite'
import { capacityAnnotations } from './names.ts'
import { clusterAPINodeClassKind } from './nodeclass/types.ts'
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
  let losesAnswer = false
  const lossy: KubeClient = {
    ...bound(kube),
    patch: async <T extends KubeObject>(
      type: ResourceType<T>,
      key: ObjectKey,
      patch: object,
      options?: PatchOptions,
    ) => {
      const patched = await kube.patch<T>(type, key, patch, options)
      if (!losesAnswer || type.plural !== 'machinedeployments') return patched
      losesAnswer = false
      throw new KubeError('transport', 0, 'socket hang up')
    },
  }
  const startProcess: ContractWorld['startProcess'] = (death) => {
    const { client, isDead } = mortalProcess(death)
    return { provider: stage.newProvider(client(lossy)), isDead }
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
      losesAnswer = true
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

/** The methods of a client as values. */
function bound(kube: KubeClient): KubeClient {
  return {
    get: (type, key) => kube.get(type, key),
    list: (type, options) => kube.list(type, options),
    create: (type, object) => kube.create(type, object),
    update: (type, object) => kube.update(type, object),
    patch: kube.patch.bind(kube),
    delete: (type, key, options) => kube.delete(type, key, options),
    evict: () => Promise.resolve(),
    serverVersion: () => kube.serverVersion(),
  }
}

examineProvider('cluster-api', open)
