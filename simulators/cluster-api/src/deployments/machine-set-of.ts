/** The MachineSet of a MachineDeployment's template (cluster-api.md 18). */
import { isDeepStrictEqual } from 'node:util'
import { apiVersionOf } from '@tenon/api'
import type { HubParts } from '../hub-parts.ts'
import { type DeletionPolicy, type FullDeployment, type FullSet, ownedBy } from '../kinds.ts'

type Texts = Readonly<Record<string, string>>

/** Annotation of a MachineSet: the number of its template. The current one has the highest. */
export const revisionAnnotation = 'machinedeployment.clusters.x-k8s.io/revision'

/** Annotations that are not copied from a MachineDeployment. */
const staysBehind = (key: string): boolean =>
  key.startsWith('kubectl.kubernetes.io/') || key.startsWith('machinedeployment.clusters.x-k8s.io/')

interface Wanted {
  readonly labels: Texts
  readonly annotations: Texts
  readonly template: { readonly metadata: { readonly labels: Texts; readonly annotations: Texts } }
  readonly policy: DeletionPolicy
}

interface Revision {
  readonly hash: string
  readonly number: number
}

function wantedOf({ names }: HubParts, deployment: FullDeployment, { hash, number }: Revision): Wanted {
  const { annotations = {}, name } = deployment.metadata
  const { clusterName = '', deletion, strategy, template } = deployment.spec ?? {}
  const labels = {
    ...template?.metadata?.labels,
    [names.clusterName]: clusterName,
    [names.deploymentName]: name,
    'machine-template-hash': hash,
  }
  return {
    labels,
    annotations: {
      ...Object.fromEntries(Object.entries(annotations).filter(([key]) => !staysBehind(key))),
      [revisionAnnotation]: String(number),
    },
    template: { metadata: { labels, annotations: template?.metadata?.annotations ?? {} } },
    policy: deletion?.order ?? strategy?.rollingUpdate?.deletePolicy ?? 'Random',
  }
}

const policyField = ({ kinds }: HubParts, policy: DeletionPolicy): object =>
  kinds.version === 'v1beta1' ? { deletePolicy: policy } : { deletion: { order: policy } }

/** A new MachineSet, without replicas at first. */
export function newSet(parts: HubParts, deployment: FullDeployment, revision: Revision): FullSet {
  const { kinds } = parts
  const { hash } = revision
  const { name, namespace = '' } = deployment.metadata
  const { labels, annotations, template, policy } = wantedOf(parts, deployment, revision)
  return {
    apiVersion: apiVersionOf(kinds.set),
    kind: kinds.set.kind,
    metadata: {
      name: `${name}-${hash}`,
      namespace,
      labels,
      annotations,
      ownerReferences: [ownedBy(kinds.deployment, deployment)],
    },
    spec: {
      clusterName: deployment.spec?.clusterName ?? '',
      replicas: 0,
      selector: { matchLabels: { ...deployment.spec?.selector?.matchLabels, 'machine-template-hash': hash } },
      ...policyField(parts, policy),
      template: { ...template, spec: deployment.spec?.template?.spec ?? {} },
    },
  }
}

/** Copies fields that change in place from the MachineDeployment to its MachineSet. */
export function syncSet(parts: HubParts, deployment: FullDeployment, set: FullSet, revision: Revision): void {
  const { api, kinds } = parts
  const wanted = wantedOf(parts, deployment, revision)
  const spec = deployment.spec?.template?.spec ?? {}
  if (isSame(set, wanted, spec)) return
  const { metadata, spec: { template } = {} } = set
  api.patch(kinds.set, metadata.namespace, metadata.name, {
    metadata: {
      labels: exactly(metadata.labels, wanted.labels),
      annotations: exactly(metadata.annotations, wanted.annotations),
    },
    spec: {
      ...policyField(parts, wanted.policy),
      template: {
        metadata: {
          labels: exactly(template?.metadata?.labels, wanted.labels),
          annotations: exactly(template?.metadata?.annotations, wanted.template.metadata.annotations),
        },
        spec: exactly(template?.spec, spec),
      },
    },
  })
}

function isSame(
  { metadata, spec }: FullSet,
  { labels, annotations, template, policy }: Wanted,
  own: object,
): boolean {
  return (
    isDeepStrictEqual(metadata.labels, labels) &&
    isDeepStrictEqual(metadata.annotations ?? {}, annotations) &&
    isDeepStrictEqual(spec?.template, { ...template, spec: own }) &&
    (spec?.deletion?.order ?? spec?.deletePolicy) === policy
  )
}

/** A merge patch that makes a flat object equal to `wanted`. */
function exactly(there: object | undefined, wanted: object): object {
  const gone = Object.keys(there ?? {}).filter((key) => !Object.hasOwn(wanted, key))
  return { ...Object.fromEntries(gone.map((key) => [key, null])), ...wanted }
}
