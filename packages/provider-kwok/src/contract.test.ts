import { karpenterKinds, kinds, labels, type NodePool } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import {
  type ContractWorld,
  examineProvider,
  MemoryKube,
  mortalProcess,
} from '@tenon/provider/contract-suite'
import { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { defaultCatalogue } from './catalogue.ts'
import { kwokNodeClassKind } from './nodeclass.ts'
import { KwokProvider } from './provider.ts'

const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }
const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: { template: { spec: { nodeClassRef, requirements: [] } } },
}

async function open(): Promise<ContractWorld> {
  const clock = new VirtualClock()
  const kube = new MemoryKube(clock)
  const random = new SeededRandom(1)
  let isSoldOut = false
  const instanceTypes = defaultCatalogue().map((type) => ({
    ...type,
    offerings: type.offerings.map((offering) => ({
      ...offering,
      get available() {
        return !isSoldOut
      },
    })),
  }))
  const nodeClass = {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
  }
  kube.put(kwokNodeClassKind, nodeClass)
  const annotate = (name: string, value: string) => {
    const annotations = { [`simulation.karpenter.kwok.sh/${name}`]: value }
    kube.put(kwokNodeClassKind, { ...nodeClass, metadata: { name: 'default', annotations } })
  }
  const startProcess: ContractWorld['startProcess'] = (death) => {
    const { client, isDead } = mortalProcess(death)
    return {
      provider: new KwokProvider({
        client: client(kube),
        nodeClasses: kube.cache(kwokNodeClassKind),
        runtime: { clock, random, logger: silentLogger },
        instanceTypes,
      }),
      isDead,
    }
  }
  return await Promise.resolve({
    provider: startProcess().provider,
    pool,
    unknownProviderID: 'kwok://nobody',
    malformedProviderIDs: (existing) => ['', 'kwok://', existing.replace('kwok', 'fake'), existing.slice(7)],
    startProcess,
    advanceUntil: (done, limitMs) => clock.advanceUntil(done, limitMs),
    createClaim: (name) =>
      kube.put(karpenterKinds.nodeClaim, {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodeClaim',
        metadata: { name, labels: { [labels.nodePool]: 'default' } },
        spec: {
          nodeClassRef,
          requirements: [
            { key: labels.instanceType, operator: 'In', values: ['c-1x-amd64-linux', 's-2x-amd64-linux'] },
            { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
          ],
        },
      }),
    storeClaim: (claim) => kube.put(karpenterKinds.nodeClaim, claim),
    instancesOf: (name) =>
      kube
        .all(kinds.node)
        .filter(({ metadata }) => metadata.annotations?.['karpenter.kwok.sh/node-claim'] === name)
        .map(({ spec }) => spec?.providerID ?? ''),
    addForeignInstance: () => {
      const metadata = { name: 'foreign' }
      const providerID = 'other://foreign'
      kube.put(kinds.node, { apiVersion: 'v1', kind: 'Node', metadata, spec: { providerID } })
      return providerID
    },
    loseNextAnswer: () => {
      const error = new KubeError('transport', 0, 'socket hang up')
      kube.failures.push({ verb: 'create', plural: 'nodes', error, hasEffect: true })
    },
    obstruct: async (obstacle) => {
      // A Node that is refused never appears; the launch does not tell.
      if (obstacle === 'refused') return false
      if (obstacle === 'nodeClassMissing') await kube.delete(kwokNodeClassKind, { name: 'default' })
      else if (obstacle === 'soldOut') isSoldOut = true
      else if (obstacle === 'throttled') annotate('rate-limit', '0')
      else {
        const condition = {
          type: 'Ready',
          status: 'False',
          reason: 'Told',
          message: 'not yet',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        } as const
        kube.put(kwokNodeClassKind, { ...nodeClass, status: { conditions: [condition] } })
      }
      return true
    },
    causeDrift: () => {
      annotate('image', 'v2')
      return true
    },
  })
}

examineProvider('kwok', open)
