/** Pods of forty shapes for which no NodePool of the population can launch a node. */
import { kinds, labels, type Pod } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { newPod } from './population.ts'

/** Shapes differ in their reason, or in their requests. */
const shapes = 40
/** Far above the indexes of running pods. */
const firstIndex = 10_000_000

/** @param at creation time. */
export function pendingPod(index: number, at: string): Pod {
  const shape = index % shapes
  const pod = newPod(firstIndex + index, at)
  const app = `pending-${shape}`
  const controller = `${app}-7f6d5c4b3a`
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: controller, uid: ownerUid(shape) }
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      name: `${controller}-${index}`,
      namespace: `team-${shape}`,
      labels: { app, 'pod-template-hash': '7f6d5c4b3a' },
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
    },
    spec: { ...pod.spec, ...forbidding(shape) },
  }
}

/** Creates a pod with an Unschedulable condition. */
export function createUnschedulable(
  api: LocalApi,
  { apiVersion, kind, metadata, spec }: Pod,
  at: string,
): void {
  api.create(kinds.pod, { apiVersion, kind, metadata, spec })
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime: at }
  api.patch(kinds.pod, metadata.namespace, metadata.name, { status: { conditions: [condition] } }, 'status')
}

/** Too large, an unknown label, a zone without offerings, or an unavailable architecture. */
function forbidding(shape: number): Partial<Pod['spec']> {
  const size = Math.floor(shape / 4) + 1
  const container = {
    name: 'app',
    image: 'app',
    resources: { requests: { cpu: `${size * 100}m`, memory: `${size * 256}Mi` } },
  }
  const containers = [container]
  switch (shape % 4) {
    case 0:
      return {
        containers: [{ ...container, resources: { requests: { cpu: String(1000 * size), memory: '1Gi' } } }],
      }
    case 1:
      return { containers, nodeSelector: { 'example.com/disk': `kind-${size}` } }
    case 2:
      return { containers, nodeSelector: { [labels.zone]: `test-zone-x${size}` } }
    default:
      return {
        containers,
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: labels.arch, operator: 'In', values: [`arch-${size}`] }] },
              ],
            },
          },
        },
      }
  }
}

const ownerUid = (shape: number): string => `0000000a-5ca1-4b1e-8a7e-${shape.toString(16).padStart(12, '0')}`
