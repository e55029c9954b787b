import type { ProviderModule } from '@tenon/provider'
import { exoscaleNodeClassKind } from './nodeclass/types.ts'

const form = `write apiVersion ${exoscaleNodeClassKind.group}/${exoscaleNodeClassKind.version}`

/** Exoscale SKS. */
export const exoscale: ProviderModule = {
  name: 'exoscale',
  title: 'Exoscale',
  repairsNodes: true,
  nodeClasses: [exoscaleNodeClassKind],
  options: [],
  validateOptions: [
    {
      flag: 'zone',
      variable: 'EXOSCALE_ZONE',
      kind: 'text',
      fallback: '',
      takes: 'name',
      meaning: 'zone of Exoscale to check against (EXOSCALE_ZONE, default: all)',
    },
  ],
  examples: {
    controller: [
      'EXOSCALE_ZONE=ch-gva-2 EXOSCALE_SKS_CLUSTER_ID=… EXOSCALE_API_KEY=… EXOSCALE_API_SECRET=… \\',
      '  tenon controller --provider exoscale --leader-election-namespace kube-system',
    ],
    validate: ['tenon validate examples/exoscale --zone ch-gva-2'],
  },
  formerNodeClasses: {
    'karpenter.exoscale.com/v1alpha1 ExoscaleNodeClass': form,
    'karpenter.exoscale.com/v1beta1 ExoscaleNodeClass': form,
  },
  crds: async () => {
    const { exoscaleNodeClassCrd } = await import('./nodeclass/crd.ts')
    return [exoscaleNodeClassCrd()]
  },
  chart: async () => {
    const { chart } = await import('./chart.ts')
    return chart
  },
  open: async (dependencies) => {
    const { openForController } = await import('./open-for-controller.ts')
    return await openForController(dependencies)
  },
  offline: async (env) => {
    const { offlineCatalogue } = await import('./offline.ts')
    return offlineCatalogue(env)
  },
  nodeGroupKind: 'sks-nodepool',
  nodeGroups: async () => {
    const { nodeGroupModule } = await import('./nodegroups/open.ts')
    return nodeGroupModule
  },
  survey: async () => {
    const { surveyModule } = await import('./survey/survey.ts')
    return surveyModule
  },
  preflight: async () => {
    const { preflightModule } = await import('./preflight/preflight.ts')
    return preflightModule
  },
}
