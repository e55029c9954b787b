import { isIP } from 'node:net'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { ConsoleFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withSourceFlags } from '../../kubectl/flags.ts'
import { collect, duration, examples, port } from '../../command-line.ts'

export function addConsole(program: Command, io: Io): void {
  const command = program
    .command('console')
    .summary('Show the cluster on a page in the browser')
    .description(
      'Serves a page on this host alone, and prints a link that opens it once: price, map of the nodes, pending pods with what would let them run, NodePools, decisions, what a change would do, cost, and replays. It reads with your own rights, and changes nothing unless --allow-actions is given; then each action shows its command and asks. With --serve it is for a team, behind a proxy that signs users in: docs/console.md#for-a-team.',
    )
    .option('--serve', 'serve a team: each request needs the token of its user, and has the rights of that')
    .option(
      '--address <ip>',
      'IP address to listen on; others than 127.0.0.1 only with --serve',
      ip,
      '127.0.0.1',
    )
    .option('--url <url>', 'where browsers find the page of --serve, such as https://tenon.example.com', url)
    .option(
      '--token-header <name>',
      'header with the token of the user, for --serve',
      headerName,
      'Authorization',
    )
    .option('--port <number>', 'port of the page; 0 for a free one', port, 0)
    .option('--open', 'open the link in the browser')
    .option('--allow-actions', 'let the page cordon, drain, delete, pause and apply, each after asking')
    .addOption(
      new Option('--drain-timeout <duration>', 'how long a drain tries')
        .argParser(duration)
        .default(60_000, '1m'),
    )
    .option('--trace <file>', 'recording of tenon record for the view Replay')
    .option('-f, --filename <path>', 'NodePools of a variant of the replay; can be repeated', collect, [])
  withSourceFlags(command)
    .addHelpText(
      'after',
      examples(
        'tenon console',
        'tenon console --open --context staging',
        'tenon console -s cluster.jsonl.gz',
        'tenon console --trace week.tnr -f pools.yaml',
        'tenon console --serve --address 0.0.0.0 --port 8090 --url https://tenon.example.com',
      ),
    )
    .action(async (flags: ConsoleFlags) => {
      const { runConsole } = await import('./run.ts')
      await runConsole(io, flags)
    })
}

function ip(value: string): string {
  if (isIP(value) === 0) throw new InvalidArgumentError('Use an IP address such as 127.0.0.1 or 0.0.0.0.')
  return value
}

/** The page has no path of its own: browsers find it at the root. */
function url(value: string): URL {
  const parsed = URL.parse(value)
  const isOrigin = parsed !== null && parsed.href === `${parsed.origin}/`
  if (!isOrigin || !['http:', 'https:'].includes(parsed.protocol))
    throw new InvalidArgumentError('Use a URL without a path, such as https://tenon.example.com.')
  return parsed
}

function headerName(value: string): string {
  if (!/^[\w-]{1,100}$/.test(value))
    throw new InvalidArgumentError('Use a name such as X-Forwarded-Access-Token.')
  return value
}
