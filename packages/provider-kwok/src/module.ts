import type { ProviderModule, ProviderOption } from '@tenon/provider'
import { kwokNodeClassKind } from './nodeclass.ts'

const instanceTypesFile: ProviderOption = {
  flag: 'instance-types-file-path',
  variable: 'INSTANCE_TYPES_FILE_PATH',
  kind: 'text',
  fallback: '',
  takes: 'PATH',
  meaning: 'JSON file of the instance types to offer.',
}

/** Simulated nodes on a real control plane. */
export const kwok: ProviderModule = {
  name: 'kwok',
  title: 'KWOK',
  repairsNodes: true,
  nodeClasses: [kwokNodeClassKind],
  options: [
    instanceTypesFile,
    {
      flag: 'kwok-partitions',
      variable: 'KWOK_PARTITIONS',
      kind: 'text',
      fallback: 'a',
      takes: 'NAMES',
      meaning: 'Names of the kwok controllers; each node goes to one of them.',
    },
  ],
  validateOptions: [
    {
      ...instanceTypesFile,
      takes: 'path',
      meaning:
        'instance types of KWOK to check against (INSTANCE_TYPES_FILE_PATH, default: the built-in ones)',
    },
  ],
  examples: {
    controller: ['tenon controller --provider=kwok --kubeconfig ~/.kube/config --disable-leader-election'],
    validate: ['tenon validate pools.yaml --instance-types-file-path types.json'],
  },
  formerNodeClasses: { 'karpenter.kwok.sh/v1 KWOKNodeClass': 'write apiVersion karpenter.kwok.sh/v1alpha1' },
  crds: async () => {
    const { kwokNodeClassCrd } = await import('./crd.ts')
    return [kwokNodeClassCrd]
  },
  chart: async () => {
    const { chart } = await import('./chart.ts')
    return chart
  },
  open: async ({ env, ...dependencies }) => {
    const { openKwok } = await import('./open.ts')
    return openKwok(env, dependencies)
  },
  offline: async (env, readText) => {
    const { offlineCatalogue } = await import('./offline.ts')
    return await offlineCatalogue(env, readText)
  },
  survey: async () => {
    const { surveyModule } = await import('./survey.ts')
    return surveyModule
  },
}
