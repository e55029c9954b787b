/** Images in the published charts and manifests of other autoscalers, as their values name them. */

/** The image of a chart or manifest. */
export interface PublishedImage {
  /** The project and its versions. */
  readonly of: string
  readonly repository: string
  readonly tag: string
}

/** Charts `karpenter` of Clever Cloud's provider. */
export const cleverCloudImages: readonly PublishedImage[] = [
  {
    of: 'karpenter up to 0.9.1',
    repository: 'ghcr.io/diodonfrost/karpenter-provider-clever-cloud',
    tag: 'v0.9.1',
  },
  ...['0.9.2', '0.10.0', '0.11.0', '0.12.0'].map((version) => ({
    of: `karpenter ${version}`,
    repository: 'ghcr.io/clevercloud/karpenter',
    tag: `v${version}`,
  })),
]

/** Manifests and releases of Exoscale's provider, which has no chart. */
export const exoscaleImages: readonly PublishedImage[] = [
  { of: 'config/deployment.yaml', repository: 'docker.io/exoscale/karpenter-exoscale', tag: 'latest' },
  { of: 'releases', repository: 'exoscale/karpenter', tag: '1.36.5' },
  { of: 'releases by their repository', repository: 'exoscale/karpenter-provider-exoscale', tag: '1.36.5' },
]

/** Charts `karpenter` of the Cluster API provider. */
export const clusterApiImages: readonly PublishedImage[] = [
  {
    of: 'karpenter 0.2.0',
    repository: 'gcr.io/k8s-staging-karpenter-cluster-api/karpenter-clusterapi-controller',
    tag: 'latest',
  },
]
