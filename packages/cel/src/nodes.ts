import type { ASTNode } from '@marcbachmann/cel-js'

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value
}

export function childNodes(node: ASTNode): readonly ASTNode[] {
  const found: ASTNode[] = []
  const collect = (value: unknown): void => {
    if (isNode(value)) found.push(value)
    else if (Array.isArray(value)) for (const item of value) collect(item)
  }
  collect(node.args)
  return found
}
