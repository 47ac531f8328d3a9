/* void emu_switch(void** save, void* to): keep the callee-saved registers on this stack, go on with that one. */
.text
.globl emu_switch
.hidden emu_switch
.type emu_switch, @function
emu_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
.size emu_switch, .-emu_switch
.section .note.GNU-stack, "", @progbits
