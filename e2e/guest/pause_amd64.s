#include "textflag.h"

// func pause()
TEXT ·pause(SB), NOSPLIT, $0-0
	MOVL $10000, CX
next:
	DECL CX
	JNZ next
	PAUSE
	RET
