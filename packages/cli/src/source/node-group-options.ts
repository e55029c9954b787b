/** Options of commands that also look at node groups, named as those of `tenon cluster-autoscaler`. */
import { type Command, Option } from 'commander'
import { collect } from '../command-line.ts'
import { builtInProviders } from '../providers.ts'

const only = 'with --mode cluster-autoscaler:'
const clouds = builtInProviders.flatMap(({ name, nodeGroupsCloud = name, nodeGroups }) =>
  nodeGroups === undefined ? [] : [nodeGroupsCloud],
)

/** Adds `--mode`, and which cloud and groups it is about. */
export function addNodeGroupOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--mode <name>', 'what is to add and remove nodes: NodePools, or node groups of the cloud')
        .choices(['nodepools', 'cluster-autoscaler'])
        .default('nodepools'),
    )
    .option(
      '--cloud-provider <name>',
      `${only} the cloud of the node groups, ${clouds.join(' or ')} (default: that of the running autoscaler or of the nodes)`,
    )
    .option(
      '--cloud-config <path>',
      `${only} kubeconfig of the management cluster, where node groups are objects of one (default: the cluster itself)`,
    )
    .addOption(
      new Option(
        '--node-group-auto-discovery <spec>',
        `${only} which objects are node groups; can be repeated`,
      )
        .argParser(collect)
        .default([], 'as the autoscaler runs'),
    )
    .addOption(
      new Option('--nodes <min:max:name>', `${only} bounds of a node group; can be repeated`)
        .argParser(collect)
        .default([], 'as the autoscaler runs'),
    )
}
