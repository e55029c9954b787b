/** Makes invisible characters visible in all texts of the page. */
import { type ComponentChildren, options, type VNode } from 'preact'
import { shownLines } from '../../text/shown.ts'

/** After this call, no text of an object can reverse the direction of other text, or hide a part of itself. */
export function startShowing(): void {
  const others = options.vnode?.bind(options)
  options.vnode = (vnode) => {
    const { props } = vnode as VNode<{ children?: ComponentChildren }>
    if (props.children !== undefined) props.children = shownChildren(props.children)
    others?.(vnode)
  }
}

function shownChildren(children: ComponentChildren): ComponentChildren {
  if (typeof children === 'string') return shownLines(children)
  return Array.isArray(children) ? children.map(shownChildren) : children
}
