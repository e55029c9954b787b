/** Options of commands that look at node groups, named as those of `tenon cluster-autoscaler`. */
import { Option } from 'commander'
import { collect } from '../command-line.ts'
import { builtInProviders } from '../providers.ts'

const only = 'with --mode cluster-autoscaler:'
const clouds = builtInProviders.flatMap(({ name, nodeGroupsCloud = name, nodeGroups }) =>
  nodeGroups === undefined ? [] : [nodeGroupsCloud],
)

/** Each call makes a new option, as an option belongs to one command. */
export const nodeGroupOptions: Readonly<
  Record<'cloudProvider' | 'cloudConfig' | 'discovery' | 'nodes', () => Option>
> = {
  cloudProvider: () =>
    new Option(
      '--cloud-provider <name>',
      `${only} the cloud of the node groups, ${clouds.join(' or ')} (default: that of the running autoscaler or of the nodes)`,
    ),
  cloudConfig: () =>
    new Option(
      '--cloud-config <path>',
      `${only} kubeconfig of the management cluster, where node groups are objects of one (default: the cluster itself)`,
    ),
  discovery: () =>
    new Option('--node-group-auto-discovery <spec>', `${only} which objects are node groups; can be repeated`)
      .argParser(collect)
      .default([], 'as the autoscaler runs'),
  nodes: () =>
    new Option('--nodes <min:max:name>', `${only} bounds of a node group; can be repeated`)
      .argParser(collect)
      .default([], 'as the autoscaler runs'),
}
